"""Replicas: calls a second and CPU time a call with 1, 2 and 4 of them, direct and behind HAProxy.

The machine has few cores, so what a replica costs is told in CPU time a call: that is what grows or does not.
"""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.http import free_port
from bench.process import NotRunning
from tests.deploy.balancer import FOLDER, command, need_program
from tests.support.ports import wait_until_listening

CONNECTIONS = 32
READY_SECONDS = 30.0
ERA = "2026-07-28"
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def replica(environment: Mapping[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run `bridgehead serve` with the bridge of the bench."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.host.ours", str(port)],
        env={**os.environ, **environment},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_listening(port, process)
        yield process, port
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def balancer(folder: Path, ports: list[int]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run HAProxy with the settings that people copy, in front of any number of replicas."""
    front = free_port()
    lines = [
        line for line in (FOLDER / "haproxy.cfg").read_text().splitlines() if " server replica" not in line
    ]
    lines += [f"    server replica{number} 127.0.0.1:{port} check" for number, port in enumerate(ports)]
    settings = folder / f"haproxy-{front}.cfg"
    settings.write_text("\n".join(lines).replace("8080", str(front)) + "\n")
    process = subprocess.Popen(
        command("haproxy", need_program("haproxy"), settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_listening(front, process)
        yield process, front
    finally:
        process.terminate()
        process.wait(30)


def measured(
    folder: Path,
    count: int,
    seconds: float,
    environment: Mapping[str, str],
    *,
    is_balanced: bool,
    connections: int = CONNECTIONS,
    token: str = "",
) -> dict[str, float]:
    """Load some replicas for a while; return calls a second, the median answer, and CPU time a call."""
    with ExitStack() as stack:
        replicas = [
            stack.enter_context(replica({**environment, "BRIDGEHEAD_STATE_DIR": str(folder / f"{number}")}))
            for number in range(count)
        ]
        ports = [port for _, port in replicas]
        front = stack.enter_context(balancer(folder, ports)) if is_balanced else None
        target = ports[0] if front is None else front[1]
        _wait_until_ready(target)
        _load(target, 0.5, connections, token)
        watched = [process for process, _ in replicas]
        before = [_cpu(process.pid) for process in watched]
        before_front = 0.0 if front is None else _cpu(front[0].pid)
        told = _load(target, seconds, connections, token)
        spent = sum(_cpu(process.pid) for process in watched) - sum(before)
        spent_front = 0.0 if front is None else _cpu(front[0].pid) - before_front
    answered = told["answered"]
    return {
        "rate": told["rate"],
        "median_ms": told["median_ms"],
        "cpu_us": spent / answered * 1e6,
        "balancer_us": spent_front / answered * 1e6,
    }


def _wait_until_ready(port: int) -> None:
    limit = time.monotonic() + READY_SECONDS
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_SECONDS)
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
        connection.close()
        if status == http.HTTPStatus.OK:
            return
        if time.monotonic() > limit:
            raise NotRunning(f"/readyz answers {status}")
        time.sleep(0.05)


def _load(port: int, seconds: float, connections: int, token: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.load", str(port), ERA, str(seconds), str(connections), token],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotRunning(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
