"""The official TypeScript clients: owns which of them run, over what, and in which modes."""

import shutil
import sys
from pathlib import Path

from tests.interop.check import Check
from tests.interop.node import Package

CLIENT = Package("@modelcontextprotocol/client", "2.4.0")
SDK1 = Package("@modelcontextprotocol/sdk", "1.32.2")
MODES = ("legacy", "auto", "modern")

HERE = Path(__file__).resolve().parent
STDIO = ("stdio", sys.executable, "-m", "tests.interop.server")


def checks(node: str, address: str, token: str = "", *, about: str = "") -> list[Check]:
    """Every client in every mode; with a token, or at a host, only over HTTP."""
    http = ("http", f"{address}/mcp")
    sse = ("sse", f"{address}/sse")
    local = () if about else (STDIO,)
    newer = [
        _check(node, CLIENT, "typescript_client.mjs", (mode, *target), token, about)
        for mode in MODES
        for target in (*local, http)
    ]
    older = [
        _check(node, SDK1, "typescript_sdk1.mjs", target, token, about) for target in (*local, http, sse)
    ]
    return newer + older


def _check(
    node: str, package: Package, script: str, arguments: tuple[str, ...], token: str, about: str
) -> Check:
    """A script finds its packages beside itself, so it runs from a copy in their folder."""
    package.install()
    for name in ("checks.mjs", script):
        shutil.copy(HERE / name, package.folder / name)
    words = [word for word in arguments if word in {*MODES, "stdio", "http", "sse"}]
    return Check(
        name=f"{about}{package.name} {package.version}, {', '.join(words)}",
        command=(node, str(package.folder / script), *arguments),
        judge=_every_check_was_made,
        environment={"INTEROP_TOKEN": token},
    )


def _every_check_was_made(output: str) -> None:
    number, _, word = output.strip().partition(" ")
    assert word == "checks"
    assert int(number) >= 10
