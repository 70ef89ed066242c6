"""The files that run the host on a machine. Docker and systemd need not be here: their form is checked."""

import configparser
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridgehead.host.telemetry.exporting import SIGNALS, find_endpoint, wanted_signals
from release.dist import ROOT
from tests.support.fake_api import Answer, FakeApi, Request, running_in_thread
from tests.support.waiting import PATIENCE

HEALTHCHECK = ROOT / "deploy" / "healthcheck.py"
UNIT = ROOT / "deploy" / "bridgehead.service"


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as pairs of an instruction and what follows it."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [(line.split()[0], line.partition(" ")[2]) for line in lines if line]


def last_stage() -> dict[str, str]:
    """The instructions of the image itself; of several of one kind, the last."""
    found: dict[str, str] = {}
    for word, rest in instructions():
        found = {word: rest} if word == "FROM" else found | {word: rest}
    return found


def compose() -> dict[str, Any]:
    content = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    service: dict[str, Any] = content["services"]["bridgehead"]
    return service | {"named": content["volumes"]}


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names are case-sensitive
    parser.read(UNIT, encoding="utf-8")
    return parser


# --- the image -------------------------------------------------------------------------------------------


def test_both_stages_start_from_one_base_with_a_version() -> None:
    argument = next(rest for word, rest in instructions() if word == "ARG")
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]

    assert bases == ["python:${PYTHON}"] * 2
    assert re.match(r"PYTHON=3\.\d+\.\d+-slim-\w+@", argument)


def test_the_image_runs_as_a_user_without_rights() -> None:
    user, group = last_stage()["USER"].split(":")

    assert int(user) >= 10_000
    assert int(group) >= 10_000


def test_the_image_asks_the_host_how_it_is() -> None:
    command = last_stage()["HEALTHCHECK"].partition("CMD ")[2]

    assert json.loads(command) == ["python", "/opt/bridgehead/healthcheck.py"]
    assert ("COPY", "deploy/healthcheck.py /opt/bridgehead/healthcheck.py") in instructions()


def test_the_image_serves_and_lets_a_person_run_other_commands() -> None:
    assert json.loads(last_stage()["ENTRYPOINT"]) == ["bridgehead"]
    assert json.loads(last_stage()["CMD"]) == ["serve"]


def test_the_image_takes_only_locked_versions() -> None:
    installs = re.findall(r"pip (?:install|wheel) ([^&\n]+)", "\n".join(rest for _, rest in instructions()))

    assert [one for one in installs if "--require-hashes" not in one and "--no-index" not in one] == []
    assert [one.split()[-1] for one in installs if "--require-hashes" in one] == [
        '"requirements/${REQUIREMENTS}.txt"',
        "requirements/build.txt",
    ]
    assert all((ROOT / "requirements" / f"{name}.txt").exists() for name in ("runtime", "team", "build"))


def test_everything_that_the_image_copies_is_there_and_not_ignored() -> None:
    sources = [
        source
        for word, rest in instructions()
        if word == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    ]
    let_in = {
        line[2:].rstrip("/") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    }

    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert [
        source for source in sources if not any(source.rstrip("/").startswith(one) for one in let_in)
    ] == []


# --- the compose file ------------------------------------------------------------------------------------


def test_compose_names_no_version_which_has_another_place() -> None:
    assert compose()["image"] == "bridgehead"


def test_compose_opens_its_ports_to_this_machine_alone() -> None:
    ports = compose()["ports"]

    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []
    assert [port.rpartition(":")[2] for port in ports] == last_stage()["EXPOSE"].split()


def test_compose_keeps_what_must_outlive_a_container() -> None:
    mounted = dict(volume.split(":") for volume in compose()["volumes"])

    assert mounted.keys() == compose()["named"].keys()
    assert list(mounted.values()) == json.loads(last_stage()["VOLUME"])


def test_compose_gives_the_container_no_rights() -> None:
    service = compose()

    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert "no-new-privileges:true" in service["security_opt"]


# --- the unit --------------------------------------------------------------------------------------------


def test_the_unit_runs_the_host_as_its_own_user_and_restarts_it() -> None:
    service = unit()["Service"]

    assert service["ExecStart"].split()[1:] == ["serve"]
    assert service["User"] == "bridgehead"
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "2"


def test_the_unit_keeps_the_state_where_the_settings_say() -> None:
    service = unit()["Service"]
    folders = {f"/var/lib/{name}" for name in service["StateDirectory"].split()}

    assert {pair.partition("=")[2] for pair in service["Environment"].split()} == folders


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    text = UNIT.read_text(encoding="utf-8")
    copy.write_text(text.replace("/opt/bridgehead/bin/bridgehead", sys.executable), encoding="utf-8")

    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert [line for line in done.stderr.splitlines() if UNIT.name in line] == []


# --- the health check ------------------------------------------------------------------------------------


@contextmanager
def answering(status: int) -> Iterator[int]:
    """A server that answers everything with one status; gives its port."""

    async def respond(request: Request) -> Answer:
        return Answer(status if request.path == "/healthz" else 404)

    api = FakeApi(respond)
    with running_in_thread(api):
        yield api.port


def health(port: int) -> int:
    return subprocess.run(
        [sys.executable, HEALTHCHECK],
        env={"MCP_SERVER_PORT": str(port)},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    ).returncode


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_health_check_tells_what_the_host_answers(status: int, code: int) -> None:
    with answering(status) as port:
        assert health(port) == code


def test_the_health_check_tells_that_nobody_answers() -> None:
    with answering(200) as port:
        pass

    assert health(port) == 1


# --- the collector ---------------------------------------------------------------------------------------


def telemetry() -> dict[str, Any]:
    content = yaml.safe_load((ROOT / "deploy" / "compose.telemetry.yaml").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def test_every_pipeline_of_the_collector_names_parts_that_it_has() -> None:
    config = yaml.safe_load(telemetry()["configs"]["collector"]["content"])
    pipelines = config["service"]["pipelines"]

    assert set(pipelines) == set(SIGNALS)
    for pipeline in pipelines.values():
        for kind, names in pipeline.items():
            assert set(names) <= set(config[kind])


def test_the_host_sends_every_signal_to_where_the_collector_listens() -> None:
    services = telemetry()["services"]
    config = yaml.safe_load(telemetry()["configs"]["collector"]["content"])
    sent = services["bridgehead"]["environment"]
    port = config["receivers"]["otlp"]["protocols"]["http"]["endpoint"].rpartition(":")[2]

    assert wanted_signals(sent) == dict.fromkeys(SIGNALS, "otlp")
    assert find_endpoint(sent, "metrics") == f"http://collector:{port}/v1/metrics"
    assert re.match(r"[a-z/-]+:\d+\.\d+\.\d+@", services["collector"]["image"])
    assert all(one.startswith("127.0.0.1:") for one in services["collector"]["ports"])
