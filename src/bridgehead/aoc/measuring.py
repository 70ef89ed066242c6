"""Measuring: run a program on a day's input, time it, check its answer and record it. Blocks.

The clock is monotonic and runs from just before the start of the program to its end. A program that exceeds
the time limit is killed with everything it started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, NamedTuple

from msgspec import Struct

from bridgehead.runtime.errors import InvalidArgument, NotFound

from .files import layout
from .files.entries import CLAIMED, EXECUTION, MEASURED
from .files.instructions import Verdict
from .files.recorder import NewRun
from .workspace import Workspace

MAX_OUTPUT = 1024 * 1024
MAX_SHOWN = 2000
_VERDICTS = {
    "wrong": "wrong",
    "too_high": "wrong: too high",
    "too_low": "wrong: too low",
    "right": "right",
    "unknown": "not checked: no answer is known",
}


class Measurement(Struct, frozen=True):
    """A program to run, the number of runs, and the model that wrote it."""

    llm: str
    day: int
    phase: int
    command: list[str]
    runs: int = 5
    warm_up: int = 1
    timeout: float = 60.0


class _CompletedRun(NamedTuple):
    milliseconds: int
    output: bytes
    errors: bytes
    status: int
    is_late: bool


class MeasuredRuns(Struct, frozen=True):
    """The result of a measurement, and the text to print."""

    outcome: Literal["solved", "unchecked", "failed"]
    times: list[int]
    summary: str


def measure(workspace: Workspace, wanted: Measurement, report: Callable[[str], None]) -> MeasuredRuns:
    """Run the program; record its times if every run succeeded, and the attempt in any case."""
    path = Path(workspace.folders.inputs) / layout.input_name(wanted.day)
    if not path.is_file():
        raise NotFound(f"There is no input for day {wanted.day}.", next_step=f"Put it into {path}.")
    times: list[int] = []
    verdict: Verdict = "unknown"
    # Negative numbers are warm-up runs: checked like the others, but their times are not recorded.
    for number in range(-wanted.warm_up, wanted.runs):
        ended = _run(wanted.command, path, wanted.timeout)
        what = (
            f"warm-up {number + wanted.warm_up + 1}" if number < 0 else f"run {number + 1} of {wanted.runs}"
        )
        problem = _problem(ended, wanted)
        if not problem:
            verdict = workspace.check_answer(wanted.day, wanted.phase, _answer(ended.output))
            problem = "" if verdict in {"right", "unknown"} else f"The answer is {_VERDICTS[verdict]}."
        report(f"{what}: {ended.milliseconds} ms, {problem or _VERDICTS[verdict]}")
        if problem:
            workspace.stopwatch.note_run(
                wanted.day, wanted.phase, wanted.llm, "failed", ended.milliseconds, EXECUTION
            )
            return MeasuredRuns(
                "failed", [], f"{problem} No time was recorded; the attempt counts as not solved."
            )
        if number >= 0:
            times.append(ended.milliseconds)
    grade = MEASURED if verdict == "right" else CLAIMED
    workspace.recorder.record_now(
        [NewRun(wanted.day, wanted.phase, wanted.llm, time, EXECUTION, grade) for time in times]
    )
    outcome: Literal["solved", "unchecked"] = "solved" if verdict == "right" else "unchecked"
    typical = sorted(times)[len(times) // 2]
    workspace.stopwatch.note_run(wanted.day, wanted.phase, wanted.llm, outcome, typical, EXECUTION)
    return MeasuredRuns(
        outcome, times, f"Recorded {len(times)} runs of {wanted.llm}, median {typical} ms, {grade}."
    )


def _problem(ended: _CompletedRun, wanted: Measurement) -> str:
    if ended.is_late:
        return f"The program did not end within {wanted.timeout:g} s and was ended."
    if ended.status:
        stderr = ended.errors[-MAX_SHOWN:].decode(errors="replace").strip()
        return f"The program ended with status {ended.status}.{f' It said: {stderr}' if stderr else ''}"
    return "" if _answer(ended.output) else "The program printed no answer."


def _answer(output: bytes) -> str:
    """Return the last line that is not empty: programs may print other things before their answer."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _run(command: list[str], path: Path, timeout: float) -> _CompletedRun:
    """Run a program once, with the puzzle input on standard input."""
    # Output goes to files, not pipes: a full pipe would make the program wait for its reader.
    with path.open("rb") as puzzle_input, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        try:
            # Its own session, so that everything it starts can be killed with it.
            process = subprocess.Popen(  # noqa: S603 - what the person typed
                command, stdin=puzzle_input, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as failure:
            raise InvalidArgument(
                f"{command[0]} cannot be run: {failure.strerror or failure}.",
                next_step="Write the program and its arguments after --.",
            ) from failure
        is_late = threading.Event()

        def kill_late() -> None:
            is_late.set()
            _kill_group(process)

        timer = threading.Timer(timeout, kill_late)
        timer.start()
        try:
            # No timeout here: `wait` with one polls every few milliseconds, which would be measured too.
            status = process.wait()
            spent = time.perf_counter() - begin
        finally:
            timer.cancel()
            # After a normal end too: children that it left behind would disturb the next run.
            _kill_group(process)
        return _CompletedRun(max(1, round(spent * 1000)), _read(out), _read(err), status, is_late.is_set())


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and everything it started (on Windows, the program alone)."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _read(file: IO[bytes]) -> bytes:
    """Return the end of a file, where answers and error messages are."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MAX_OUTPUT))
    return file.read()
