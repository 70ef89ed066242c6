"""Demo: a tour of the aoc bridge, offline. An invented puzzle, solved in several ways, timed and ranked.

The solvers are small functions that stand for models; each is timed by itself.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil, isqrt
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from bridgehead.runtime.demo_script import DemoScript
from bridgehead.runtime.manifest import Trial

from .files.filters import Filters
from .ranking.rendering import table
from .settings import AocSettings
from .starter import LANTERNS, make_starter
from .workspace import open_workspace

RUNS = 5


def _by_walking() -> int:
    lit = bytearray(LANTERNS + 1)
    for walk in range(1, LANTERNS + 1):
        for lantern in range(walk, LANTERNS + 1, walk):
            lit[lantern] ^= 1
    return sum(lit)


def _by_slices() -> int:
    lit = bytearray(LANTERNS + 1)
    turned = bytes(1 - value if value < 2 else value for value in range(256))  # noqa: PLR2004 - dark and lit
    for walk in range(1, LANTERNS + 1):
        lit[walk::walk] = lit[walk::walk].translate(turned)
    return sum(lit)


def _by_thinking() -> int:
    lit = 0
    # Only lanterns with a square number are turned an odd number of times.
    while (lit + 1) ** 2 <= LANTERNS:
        lit += 1
    return lit


SOLVERS: dict[str, Callable[[], int]] = {
    "patient-heron": _by_walking,
    "quick-otter": _by_slices,
    "clever-fox": _by_thinking,
}


FASTEST = "clever-fox"
SHORT_NAME = "fox"


@contextmanager
def trial(folder: Path) -> Iterator[Trial]:
    """Provide a folder with an invented puzzle to fetch."""
    _invent(folder)
    yield Trial({"AOC_DATA_DIR": str(folder)}, "fetch_instruction", "Lanterns", {"day": 1})


def show_demo(console: Console) -> bool:
    """Show the bridge; return whether every step gave the expected result."""
    with TemporaryDirectory() as folder:
        # No other variables: the user's own settings and records stay out of the demo.
        environment = {"AOC_DATA_DIR": folder}
        _invent(Path(folder))
        with DemoScript(console, "aoc", environment) as guide:
            _show(guide)
        console.print("\n[bold]Who is fastest? bridgehead aoc leaderboard[/]")
        board = open_workspace(AocSettings(environment)).board_now(Filters()).board
        console.print(table(board, console.width))
        return guide.failures == 0 and board.rows[0].llm == FASTEST


def _invent(folder: Path) -> None:
    """Put an invented puzzle and the aliases of the demo into a folder."""
    make_starter(folder)
    (folder / "aliases.json").write_text(json.dumps({FASTEST: [SHORT_NAME]}), encoding="utf-8")


def _show(guide: DemoScript) -> None:
    puzzle = guide.call("An agent reads the puzzle of the day.", "fetch_instruction", {"day": 1})
    guide.expect("Lanterns on the quay" in puzzle["content"][0]["text"])
    guide.say(f"Three solvers work on it, {RUNS} times each; every time is measured and recorded.")
    for name, solve in SOLVERS.items():
        for _ in range(RUNS):
            guide.request("tools/call", {"name": "record_speed", "arguments": _timed(guide, name, solve)})
    again = _timed(guide, SHORT_NAME, SOLVERS[FASTEST])
    guide.call("One more of the fox, with its short name, which aliases.json knows.", "record_speed", again)
    board = guide.request("tools/call", {"name": "speed_leaderboard", "arguments": {}})
    guide.expect(board["structuredContent"]["rows"][0]["llm"] == FASTEST)


def _timed(guide: DemoScript, name: str, solve: Callable[[], int]) -> dict[str, int | str]:
    """Solve the puzzle; return the arguments that record its time. A wrong answer fails the demo."""
    begin = time.perf_counter()
    answer = solve()
    spent = ceil((time.perf_counter() - begin) * 1000)
    # A lantern is turned once for each of its divisors, so those of the square numbers stay lit.
    guide.expect(answer == isqrt(LANTERNS))
    return {"day": 1, "phase": 1, "llm_name": name, "speed_ms": spent}
