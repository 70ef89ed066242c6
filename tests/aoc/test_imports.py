"""What the aoc server has imported when it answers `initialize`: msgspec, the engine and cheap modules."""

from pathlib import Path

from tests.mcp.test_imports import FORBIDDEN, FURTHER, foundation, probed

PROGRAM = """
import sys
def look(event, arguments):
    if event == "import" and arguments[0] == "bridgehead.mcp.stdio.server":
        sys.stderr.write(" ".join(sorted(sys.modules)) + "\\n")
        sys.stderr.flush()
sys.addaudithook(look)
from bridgehead.runtime import manifest, plugins
raise SystemExit(manifest.serve(plugins.load("aoc"), {environment!r}))
"""
ALSO_FORBIDDEN = {
    "bridgehead.aoc.files.day_file",
    "bridgehead.aoc.files.recorder",
    "bridgehead.aoc.files.records",
    "concurrent.futures",
    "dataclasses",
    "datetime",
    "filelock",
    "pathlib",
    "platformdirs",
    "rich",
}
CHEAP = {"_bisect", "bisect", "_stat", "math", "stat"}
"""Modules in C or of a few lines, that the bridge's own modules need."""


def test_the_handshake_of_the_bridge_loads_nothing_dear(tmp_path: Path) -> None:
    loaded = probed("-c", PROGRAM.format(environment={"AOC_DATA_DIR": str(tmp_path)}))

    further = {name for name in loaded - foundation() if not name.startswith("bridgehead")}
    assert further <= FURTHER | CHEAP, sorted(further - FURTHER - CHEAP)
    assert not (loaded - foundation()) & (set(FORBIDDEN) | ALSO_FORBIDDEN)
    assert "bridgehead.aoc.bridge" in loaded
