"""A solver run for tests: owns how a Python program is put into a folder and run once."""

import os
import sys
from io import BytesIO
from pathlib import Path

from msgspec import Struct

from bridgehead.aoc.sandbox.isolation import View, find_bubblewrap, find_parts
from bridgehead.aoc.sandbox.program import EndedProgram, Job, Limits, run_program

IS_ISOLATED = find_bubblewrap() is not None


class Done(Struct, frozen=True):
    """How a program ended, and what it printed."""

    ended: EndedProgram
    out: str
    err: str


def run(
    program: str,
    folder: Path,
    *,
    limits: Limits | None = None,
    readable: tuple[Path, ...] = (),
    hidden: tuple[Path, ...] = (),
    is_isolated: bool = IS_ISOLATED,
    has_network: bool = False,
) -> Done:
    """Run a program with an input of `42` in a fresh folder below `folder`."""
    fresh = folder / "fresh"
    fresh.mkdir()
    (fresh / "input.txt").write_text("42\n")
    command, needed = find_parts([sys.executable, "-c", program], folder)
    view = View(fresh, (*needed, *readable), hidden, has_network)
    out, err = BytesIO(), BytesIO()
    bubblewrap = find_bubblewrap() if is_isolated else None
    job = Job(command, fresh / "input.txt", os.environ, view, bubblewrap, limits or Limits())
    ended = run_program(job, out, err)
    return Done(ended, out.getvalue().decode(errors="replace"), err.getvalue().decode(errors="replace"))
