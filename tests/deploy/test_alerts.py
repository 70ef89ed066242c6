"""Alerts: each rule fires in a real Prometheus after its cause, and not before."""

import asyncio
import http.client
import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.deploy.balancer import need_program
from tests.support.host_command import Command, serving
from tests.support.http_server import JSON_POST
from tests.support.messages import encode, initialize
from tests.support.ports import free_port, wait_until_listening
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import running_redis
from tests.support.small_disk import mount_small_disk
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE, until

RULES = ROOT / "docs" / "prometheus-alerts.yaml"
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
SETTINGS = """\
global: {{ scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }}
rule_files: [{rules}]
scrape_configs:
  - job_name: bridgehead
    static_configs: [{{ targets: [{targets}] }}]
"""


class Prometheus:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._port = port

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire now; none while Prometheus is still starting."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self._port}/api/v1/alerts", timeout=PATIENCE
            ) as page:
                alerts = json.load(page)["data"]["alerts"]
        except urllib.error.HTTPError as starting:
            starting.close()
            return set()
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    async def wait_for(self, name: str) -> None:
        """Wait until an alert fires."""
        async with asyncio.timeout(PATIENCE):
            while name not in await asyncio.to_thread(self.firing):
                await asyncio.sleep(0.1)


@contextmanager
def watching(folder: Path, *hosts: Command) -> Iterator[Prometheus]:
    """Run Prometheus with our rules, without the minutes that an alert waits before it fires (`for`)."""
    program, port = need_program("prometheus"), free_port()
    folder.mkdir()
    rules, settings, log = folder / "rules.yaml", folder / "prometheus.yaml", folder / "log"
    rules.write_text(re.sub(r"\n +for: .*", "", RULES.read_text(encoding="utf-8")))
    targets = ", ".join(f"'127.0.0.1:{host.port}'" for host in hosts)
    settings.write_text(SETTINGS.format(rules=rules, targets=targets))
    words = [program, f"--config.file={settings}", f"--storage.tsdb.path={folder / 'data'}"]
    with log.open("wb") as out:
        process = subprocess.Popen([*words, f"--web.listen-address=127.0.0.1:{port}"], stdout=out, stderr=out)
    try:
        wait_until_listening(port, process, log)
        yield Prometheus(port)
    finally:
        process.kill()
        process.wait(PATIENCE)


def read_metrics(host: Command) -> str:
    """Return the page of metrics of a host."""
    with urllib.request.urlopen(f"http://127.0.0.1:{host.port}/metrics", timeout=PATIENCE) as page:
        return bytes(page.read()).decode()


async def test_dead_stores_and_a_dead_host_are_heard_of(
    tmp_path: Path, breakable_postgres: PostgresServer
) -> None:
    with running_redis(tmp_path) as redis:
        settings = {
            "BRIDGEHEAD_REDIS_URL": redis.url,
            "BRIDGEHEAD_DATABASE_URL": breakable_postgres.url,
            "BRIDGEHEAD_TOKENS_FILE": str(tmp_path / "tokens.json"),
            "BRIDGEHEAD_AUTH": "off",
        }
        stores = {"BridgeheadRedisDown", "BridgeheadDatabaseDown", "BridgeheadHostDown"}
        with (
            serving(tmp_path / "state", "--bridges", "alpha", settings=settings) as host,
            watching(tmp_path / "prometheus", host) as prometheus,
        ):
            await until(lambda: 'bridgehead_database_up{role="writer"} 1' in read_metrics(host))
            await until(lambda: not prometheus.firing() & stores)

            redis.kill()
            await prometheus.wait_for("BridgeheadRedisDown")
            assert prometheus.firing() & stores == {"BridgeheadRedisDown"}
            breakable_postgres.kill()
            await prometheus.wait_for("BridgeheadDatabaseDown")
            assert "BridgeheadHostDown" not in prometheus.firing()
            host.process.kill()
            host.process.wait(PATIENCE)
            await prometheus.wait_for("BridgeheadHostDown")
            assert "BridgeheadNoMetrics" not in prometheus.firing()


async def test_a_prometheus_that_finds_no_host_says_so(tmp_path: Path) -> None:
    with watching(tmp_path / "prometheus") as prometheus:
        await prometheus.wait_for("BridgeheadNoMetrics")

        assert prometheus.firing() == {"BridgeheadNoMetrics"}


async def test_refusals_are_heard_of(tmp_path: Path) -> None:
    few = {"BRIDGEHEAD_SESSIONS_PER_CLIENT": "1"}
    statuses: set[int] = set()
    with (
        serving(tmp_path / "state", "--bridges", "alpha", settings=few) as host,
        watching(tmp_path / "prometheus", host) as prometheus,
        closing(http.client.HTTPConnection("127.0.0.1", host.port, timeout=PATIENCE)) as connection,
    ):
        while "BridgeheadBusy" not in prometheus.firing():
            headers = {name: str(value) for name, value in JSON_POST.items()}
            connection.request("POST", "/mcp", encode(initialize()), headers)
            response = connection.getresponse()
            response.read()
            statuses.add(response.status)
            await asyncio.sleep(0.1)

    assert 429 in statuses


async def test_a_clock_that_is_wrong_is_heard_of(tmp_path: Path) -> None:
    if not FAKETIME.exists():
        pytest.skip("libfaketime is not installed")
    wrong = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+120s", "DONT_FAKE_MONOTONIC": "1"}
    with (
        serving(tmp_path / "state", "--bridges", "alpha", settings=wrong) as host,
        watching(tmp_path / "prometheus", host) as prometheus,
    ):
        await prometheus.wait_for("BridgeheadClockOff")

        assert "BridgeheadHostDown" not in prometheus.firing()


async def test_a_disk_that_is_nearly_full_is_heard_of(tmp_path: Path) -> None:
    with (
        mount_small_disk() as disk,
        serving(disk.path / "state", "--bridges", "alpha") as host,
        watching(tmp_path / "prometheus", host) as prometheus,
    ):
        assert "bridgehead_disk_free_bytes" in read_metrics(host)
        assert "BridgeheadDiskNearlyFull" not in prometheus.firing()
        disk.fill()
        await prometheus.wait_for("BridgeheadDiskNearlyFull")


MEMORY = """\
rule_files: [rules.yaml]
tests:
  - interval: 1m
    input_series:
      - series: 'process_resident_memory_bytes{job="bridgehead",instance="a"}'
        values: '80x10 90x10'
      - series: 'bridgehead_limit{job="bridgehead",instance="a",scope="all",what="memory"}'
        values: '100x20'
    alert_rule_test:
      - { eval_time: 10m, alertname: BridgeheadMemoryNearLimit }
      - eval_time: 18m
        alertname: BridgeheadMemoryNearLimit
        exp_alerts:
          - exp_labels: { severity: warning, instance: a }
"""


def test_the_rules_are_valid_and_little_memory_is_heard_of(tmp_path: Path) -> None:
    """Memory by given figures: no process is made to grow that far."""
    text = RULES.read_text(encoding="utf-8")
    (tmp_path / "rules.yaml").write_text(re.sub(r" +annotations:\n(?: {10}.*\n)+", "", text))
    (tmp_path / "memory.yaml").write_text(MEMORY)
    program = need_program("promtool")

    for words in (["check", "rules", str(RULES)], ["test", "rules", "memory.yaml"]):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.returncode, "SUCCESS" in done.stdout) == (0, True), done.stdout + done.stderr
