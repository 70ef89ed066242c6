"""A load balancer as a process, with the settings that people copy and the ports of a test."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.ports import free_port, wait_until_listening
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE

FOLDER = ROOT / "deploy" / "balancers"
FILES = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf", "caddy": "Caddyfile", "envoy": "envoy.yaml"}


def find_program(name: str) -> str | None:
    """Find a balancer: beside this Python, where its wheel puts it, or on the system."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")


def need_program(name: str) -> str:
    """Find a balancer, or skip; `make deploy` installs all of them, and skips nothing."""
    found = find_program(name)
    if found is None and "BRIDGEHEAD_DEPLOY" not in os.environ:
        pytest.skip(f"{name} is not installed: run make deploy")
    assert found is not None, f"{name} is not installed"
    return found


def write_settings(name: str, folder: Path, front: int, replicas: tuple[int, int]) -> Path:
    """Write the settings that people copy with other ports, and nothing else changed."""
    text = (FOLDER / FILES[name]).read_text(encoding="utf-8")
    for old, new in ((8080, front), (3001, replicas[0]), (3002, replicas[1])):
        assert str(old) in text
        text = text.replace(str(old), str(new))
    text = text.replace("/run/bridgehead-nginx.pid", str(folder / "nginx.pid"))
    path = folder / FILES[name]
    path.write_text(text)
    return path


def command(name: str, program: str, settings: Path) -> list[str]:
    """Return how it is started in the foreground."""
    if name == "haproxy":
        return [program, "-db", "-f", str(settings)]
    if name == "nginx":
        return [program, "-c", str(settings), "-p", str(settings.parent), "-g", "daemon off;"]
    if name == "caddy":
        return [program, "run", "--config", str(settings), "--adapter", "caddyfile"]
    return [program, "-c", str(settings), "--concurrency", "1", "--disable-hot-restart", "-l", "warning"]


@contextmanager
def balancing(name: str, program: str, folder: Path, replicas: tuple[int, int]) -> Iterator[int]:
    """Run a balancer in front of two replicas, and give its port."""
    front = free_port()
    settings = write_settings(name, folder, front, replicas)
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command(name, program, settings),
            stdout=out,
            stderr=out,
            cwd=folder,
            env={**os.environ, "HOME": str(folder)},
        )
    try:
        wait_until_listening(front, process, log)
        yield front
        # A restart, which may not wait for streams that never end by themselves.
        process.terminate()
        process.wait(PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(PATIENCE)
