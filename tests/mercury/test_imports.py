"""What the bridge has imported when it answers `initialize`: msgspec, the engine, and cheap modules."""

import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.mercury.process import environment
from tests.support.children import probe_imports
from tests.support.waiting import PATIENCE

LOOK = """
import sys
def look(event, arguments):
    if event == "import" and arguments[0] == "bridgehead.mcp.stdio.server":
        sys.stderr.write(" ".join(sorted(sys.modules)) + "\\n")
        sys.stderr.flush()
sys.addaudithook(look)
from bridgehead.cli import main
sys.argv = ["bridgehead", "mercury"]
sys.exit(main())
"""
DEAR = {
    "argparse",
    "asyncio",
    "cachetools",
    "dataclasses",
    "email",
    "filelock",
    "hashlib",
    "httptools",
    "inspect",
    "json",
    "jsonschema_rs",
    "limits",
    "logging",
    "pathlib",
    "random",
    "re",
    "rich",
    "sqlite3",
    "ssl",
    "stamina",
    "urllib",
    "uvloop",
}
"""What a server may need later, and no client should wait for."""


@cache
def loaded() -> frozenset[str]:
    given = environment("http://127.0.0.1:9/v1", Path("/nonexistent"))
    left_out = ("COV", "BRIDGEHEAD_STATE_DIR")  # what measures the child, and what takes a path to be read
    kept = {name: value for name, value in given.items() if not name.startswith(left_out)}
    result, modules = probe_imports("-c", LOOK, environment=kept)
    assert result["serverInfo"]["name"] == "mercury"
    return modules


def foundation() -> frozenset[str]:
    program = "import msgspec, sys, select, signal; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return frozenset(done.stdout.split())


def test_nothing_dear_is_loaded_before_the_first_answer() -> None:
    assert sorted(DEAR & (loaded() - foundation())) == []


def test_the_parts_that_talk_to_the_api_come_later() -> None:
    names = ("api.client", "api.stream", "calling.cache", "calling.completer", "calling.sqlite_usage")
    later = {f"bridgehead.mercury.{name}" for name in names}

    assert "bridgehead.mercury.tools.chat" in loaded()
    assert not later & loaded()
