"""What a stdio server has imported when it answers `initialize`: msgspec and our own, not even asyncio.

Every further module delays the first answer of every server. What the interpreter itself loads, and what
msgspec brings along, is found out in a clean process and taken off.
"""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support.children import probe_imports, unmeasured
from tests.support.waiting import PATIENCE

PROBE = Path(__file__).parents[1] / "support" / "import_probe.py"
FOUNDATION = "import msgspec, sys\n"

OURS = {
    "bridgehead",
    "bridgehead.mcp",
    "bridgehead.mcp.bridge",
    "bridgehead.mcp.calls",
    "bridgehead.mcp.calls.call_hook",
    "bridgehead.mcp.calls.context",
    "bridgehead.mcp.calls.multi_round",
    "bridgehead.mcp.calls.params",
    "bridgehead.mcp.changes",
    "bridgehead.mcp.connection",
    "bridgehead.mcp.dispatch",
    "bridgehead.mcp.errors",
    "bridgehead.mcp.features",
    "bridgehead.mcp.features.apps",
    "bridgehead.mcp.features.content",
    "bridgehead.mcp.features.handlers",
    "bridgehead.mcp.features.bridge_base",
    "bridgehead.mcp.features.parameters",
    "bridgehead.mcp.features.prompts",
    "bridgehead.mcp.features.resources",
    "bridgehead.mcp.features.results",
    "bridgehead.mcp.features.schema",
    "bridgehead.mcp.features.signatures",  # checks declarations; our bridges skip that
    "bridgehead.mcp.features.tools",
    "bridgehead.mcp.features.uri_template",
    "bridgehead.mcp.jsonrpc",
    "bridgehead.mcp.lazy_imports",
    "bridgehead.mcp.lifespan",
    "bridgehead.mcp.limits",
    "bridgehead.mcp.methods",
    "bridgehead.mcp.methods.features",
    "bridgehead.mcp.methods.handshake",
    "bridgehead.mcp.methods.listing",
    "bridgehead.mcp.methods.subscriptions",
    "bridgehead.mcp.process",
    "bridgehead.mcp.revisions",
    "bridgehead.mcp.server",
    "bridgehead.mcp.stdio",
    "bridgehead.mcp.stdio.descriptors",
    "bridgehead.msgspec_loader",
}
FURTHER = {"select", "signal", *(["msvcrt"] if sys.platform == "win32" else [])}
"""Modules of the standard library that the handshake may load beyond its foundation. Each one costs time."""

FORBIDDEN = [
    "argparse",
    "asyncio",
    "bridgehead.mcp.http",
    "bridgehead.mcp.in_memory",
    "bridgehead.mcp.calls.request_state",
    "email",
    "hashlib",
    "hmac",
    "http",
    "http.client",
    "httptools",
    "json",
    "logging",
    "mcp",
    "mcp_types",
    "pydantic",
    "secrets",
    "urllib.parse",
    "urllib.request",
    "uvloop",
    "uvicorn",
    "websockets",
]


@cache
def foundation() -> frozenset[str]:
    program = FOUNDATION + "print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        env=unmeasured(),
        timeout=PATIENCE,
        check=True,
    )
    return frozenset(done.stdout.split())


def probed(*command: str) -> frozenset[str]:
    """Give the modules that the probe had loaded when its answer to `initialize` was out."""
    result, modules = probe_imports(*command, environment=unmeasured())
    assert result["protocolVersion"] == "2025-11-25"
    return modules - {"__main__"}


@cache
def loaded() -> frozenset[str]:
    return probed(str(PROBE))


def test_the_handshake_loads_only_what_is_on_the_list() -> None:
    further = {name for name in loaded() - foundation() if not name.startswith("bridgehead")}

    assert further <= FURTHER, (
        f"each of these delays every server's first answer: {sorted(further - FURTHER)}"
    )


def test_the_handshake_loads_only_those_of_our_modules_that_it_needs() -> None:
    ours = {name for name in loaded() if name.split(".")[0] == "bridgehead"}

    assert ours == OURS


@pytest.mark.parametrize("name", FORBIDDEN)
def test_the_handshake_does_not_load(name: str) -> None:
    assert name not in loaded() - foundation()


def test_the_list_has_no_module_that_is_not_needed_any_more() -> None:
    assert loaded() >= FURTHER
    assert not foundation() & FURTHER


def test_a_server_does_without_the_development_tools() -> None:
    program = (
        "import runpy, sys\n"
        "sys.modules.update(dict.fromkeys(['typing_extensions', 'pydantic', 'mcp', 'mcp_types'], None))\n"
        f"runpy.run_path({str(PROBE)!r}, run_name='__main__')"
    )

    assert probed("-c", program) >= OURS
