"""Manifests: what people apply to a cluster, start with compose or enable with systemd, checked offline."""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridgehead import __version__
from bridgehead.host.settings import HostSettings
from bridgehead.runtime import plugins
from tests.deploy.balancer import need_program
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE

KUBERNETES = ROOT / "deploy" / "kubernetes"
REPLICAS = ROOT / "deploy" / "replicas"
MANIFESTS = sorted(path for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml")
VERSIONS = ("1.30", "1.34")
KNOWN = {setting.name for setting in HostSettings.declared} | {
    setting.name for name in plugins.built_in_names() for setting in plugins.load(name).settings.declared
}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def pods() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for path in MANIFESTS:
        document = read(path)
        if "template" in document.get("spec", {}):
            found.append((path.name, document["spec"]["template"]["spec"]))
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_manifest_is_what_kubernetes_takes(path: Path, version: str) -> None:
    if "BRIDGEHEAD_DEPLOY" not in os.environ:
        pytest.importorskip("kubernetes_validate", reason="run make deploy")

    import_module("kubernetes_validate").validate(read(path), version, strict=True)


def test_every_manifest_is_in_the_kustomization_but_the_one_that_is_optional() -> None:
    listed = set(read(KUBERNETES / "kustomization.yaml")["resources"])

    assert {path.name for path in MANIFESTS} - listed == {"bitburner.yaml"}
    assert read(KUBERNETES / "kustomization.yaml")["images"][0]["newTag"] == __version__


def test_pods_have_no_rights_that_they_do_not_need() -> None:
    for name, pod in pods():
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            confined = container["securityContext"]
            assert confined["readOnlyRootFilesystem"] is True, name
            assert confined["allowPrivilegeEscalation"] is False, name
            assert confined["capabilities"] == {"drop": ["ALL"]}, name


def test_probes_ask_the_right_pages_and_ending_leaves_time_for_answers() -> None:
    settings = dict(line.split("=", 1) for line in (KUBERNETES / "settings.env").read_text().splitlines())
    [(_, pod)] = [found for found in pods() if found[0] == "deployment.yaml"]
    [container] = pod["containers"]

    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["startupProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    needed = float(settings["BRIDGEHEAD_SHUTDOWN_SECONDS"]) + pause + 10
    assert pod["terminationGracePeriodSeconds"] >= needed


def test_only_settings_that_exist_are_set() -> None:
    named = set(re.findall(r"^([A-Z_]+)=", (KUBERNETES / "settings.env").read_text(), re.MULTILINE))
    for _, pod in pods():
        named |= {item["name"] for container in pod["containers"] for item in container.get("env", ())}
    named |= read(REPLICAS / "compose.yaml")["x-replica"]["environment"].keys()

    assert named - KNOWN - {"POD_IP"} == set()


def test_the_game_has_one_server_and_the_replicas_do_not_serve_it() -> None:
    assert read(KUBERNETES / "bitburner.yaml")["spec"]["replicas"] == 1
    assert "bitburner" not in (KUBERNETES / "settings.env").read_text()


def test_the_disruption_budget_and_the_autoscaler_mean_the_deployment() -> None:
    labels = read(KUBERNETES / "deployment.yaml")["spec"]["selector"]["matchLabels"]
    scaler = read(KUBERNETES / "autoscaling.yaml")["spec"]

    assert read(KUBERNETES / "disruption.yaml")["spec"]["selector"]["matchLabels"] == labels
    assert read(KUBERNETES / "service.yaml")["spec"]["selector"] == labels
    assert scaler["scaleTargetRef"]["name"] == "bridgehead"
    assert scaler["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 300


# --- compose -----------------------------------------------------------------------------------------------


def test_compose_starts_two_replicas_behind_a_balancer_after_the_tables_are_there() -> None:
    services = read(REPLICAS / "compose.yaml")["services"]

    assert services["bridgehead"]["deploy"]["replicas"] == 2
    assert services["bridgehead"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert {"haproxy", "redis", "postgres", "prometheus", "grafana"} <= services.keys()
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_every_file_that_compose_mounts_is_there() -> None:
    services = read(REPLICAS / "compose.yaml")["services"]
    mounted = [
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", ())
        if volume.startswith(".")
    ]

    assert [name for name in mounted if not (REPLICAS / name).exists()] == []


def test_compose_balances_as_the_settings_that_are_tried_do(tmp_path: Path) -> None:
    program = need_program("haproxy")
    copy = tmp_path / "haproxy.cfg"
    copy.write_text((REPLICAS / "haproxy.cfg").read_text())

    done = subprocess.run([program, "-c", "-f", str(copy)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    tried = (ROOT / "deploy" / "balancers" / "haproxy.cfg").read_text()
    for line in ("balance roundrobin", "http-reuse always", "retry-on conn-failure", "timeout server 1h"):
        assert line in copy.read_text()
        assert line in tried


def test_the_dashboard_shows_every_replica_with_metrics_that_exist() -> None:
    text = (REPLICAS / "grafana" / "dashboards" / "replicas.json").read_text()
    source = "".join(path.read_text() for path in (ROOT / "src" / "bridgehead").rglob("*.py"))
    named = set(re.findall(r"bridgehead_\w+", text))

    assert sum("instance" in json.dumps(panel) for panel in json.loads(text)["panels"]) >= 5
    assert [name for name in named if f'"{name}"' not in source] == []


# --- systemd -----------------------------------------------------------------------------------------------

UNIT = ROOT / "deploy" / "bridgehead@.service"


def test_the_unit_of_a_replica_is_that_of_the_host_with_a_port_and_a_state_of_its_own() -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read(UNIT, encoding="utf-8")
    service = parser["Service"]

    assert service["ExecStart"].endswith("serve --host 127.0.0.1 --port %i")
    assert "BRIDGEHEAD_STATE_DIR=/var/lib/bridgehead/%i" in service["Environment"]
    drain = re.search(r"BRIDGEHEAD_DRAIN_SECONDS=(\d+)", service["Environment"])
    assert drain is not None
    assert int(service["TimeoutStopSec"]) > int(drain[1]) + HostSettings.shutdown_seconds.default


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit_of_a_replica(tmp_path: Path) -> None:
    copy = tmp_path / "bridgehead@3001.service"
    text = UNIT.read_text(encoding="utf-8")
    copy.write_text(text.replace("/opt/bridgehead/bin/bridgehead", sys.executable), encoding="utf-8")

    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert [line for line in done.stderr.splitlines() if copy.name in line] == []
