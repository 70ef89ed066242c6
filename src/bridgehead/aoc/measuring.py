"""Measuring: run a solver on a day's input until its time is known well, check and record it. Blocks.

Every run has a fresh folder with nothing but the input, in isolation where the system has bubblewrap.
Leftovers of a run (caches, files, processes) are removed before the next one begins.

What is measured has to be a solver. Before its answer is compared with anything, the program also gets other
inputs: those of the folder, which it has to solve too, or else a changed one, for which it must not print the
same. So nobody learns from `-- echo 4711` whether 4711 is right.
"""

from __future__ import annotations

import math
import shutil
import socket
import time
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from statistics import stdev
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct

from bridgehead.runtime.errors import InvalidArgument, NotFound

from .files import layout
from .files.entries import CLAIMED, EXECUTION, MEASURED, VERIFIED, Details, Grade
from .files.instructions import Verdict, check_answer, has_answer
from .files.recorder import NewRun
from .ranking.student_t import two_sided_quantile
from .ranking.wording import count
from .sandbox.isolation import View, find_bubblewrap, find_parts
from .sandbox.program import EndedProgram, Job, Limits, run_program
from .workspace import Workspace

SMALL = 0.05
"""Runs continue until the half-width of the 95 % interval is at most this share of the time."""
MAX_RUNS = 30
MAX_SECONDS = 120.0
"""After this long no run is started beyond the minimum."""
PROBE_SECONDS = 5.0
"""Time limit of a run on a changed input, which a solver may not understand."""
MAX_SHOWN = 2000
NOT_ISOLATED = (
    "Not isolated: bubblewrap is not available here, so the runs count as measured at best. "
    "On Debian or Ubuntu: apt install bubblewrap."
)
_VERDICTS = {
    "wrong": "wrong",
    "too_high": "wrong: too high",
    "too_low": "wrong: too low",
    "right": "right",
    "unknown": "not checked: no answer is known",
}


class Measurement(Struct, frozen=True):
    """A program to run, how often, and the model that wrote it."""

    llm: str
    day: int
    phase: int
    command: list[str]
    runs: int = 5
    """The minimum; more follow until the interval is small."""
    max_runs: int = MAX_RUNS
    warm_up: int = 1
    limits: Limits = Limits()


class MeasuredRuns(Struct, frozen=True):
    """The result of a measurement, and the text to print."""

    outcome: Literal["solved", "unchecked", "failed"]
    times: list[int]
    summary: str


def measure(
    workspace: Workspace,
    measurement: Measurement,
    report: Callable[[str], None],
    environment: Mapping[str, str],
    hidden: tuple[Path, ...] = (),
) -> MeasuredRuns:
    """Run the program; record its times if every run succeeded, and the attempt in any case."""
    path = Path(workspace.folders.inputs) / layout.input_name(measurement.day)
    if not path.is_file():
        raise NotFound(f"There is no input for day {measurement.day}.", next_step=f"Put it into {path}.")
    bubblewrap = find_bubblewrap()
    if bubblewrap is None:
        report(NOT_ISOLATED)
    solver = Solver(workspace, measurement, path, environment, hidden, bubblewrap)
    best: Grade = MEASURED if bubblewrap is None else VERIFIED
    verdict: Verdict = "unknown"
    ends: list[EndedProgram] = []
    until = time.monotonic() + MAX_SECONDS
    # Negative numbers are warm-up runs: checked like the others, but their times are not recorded.
    number = -measurement.warm_up
    is_solver = not has_answer(workspace.folders.answers, measurement.day, measurement.phase)
    while number < min(measurement.runs, measurement.max_runs) or (
        number < measurement.max_runs and half_width(ends) > SMALL and time.monotonic() < until
    ):
        ended, problem, answer = solver.run()
        is_wrong = False
        if not problem and not is_solver:
            problem = solver.try_other_inputs(answer)
            is_solver, is_wrong = not problem, bool(problem)
        if not problem:
            verdict = workspace.check_answer(measurement.day, measurement.phase, answer)
            is_wrong = verdict not in {"right", "unknown"}
            problem = f"The answer is {_VERDICTS[verdict]}." if is_wrong else ""
        cpu = "" if ended.cpu_ms is None else f", {ended.cpu_ms} ms of CPU"
        label = f"warm-up {number + measurement.warm_up + 1}" if number < 0 else f"run {number + 1}"
        report(f"{label}: {_milliseconds(ended)} ms{cpu}, {problem or _VERDICTS[verdict]}")
        if problem:
            workspace.record_run(
                measurement.day,
                measurement.phase,
                measurement.llm,
                "failed",
                _milliseconds(ended),
                best,
                is_wrong=is_wrong,
            )
            return MeasuredRuns(
                "failed", [], f"{problem} No time was recorded; the attempt counts as not solved."
            )
        if number >= 0:
            ends.append(ended)
        number += 1
    grade: Grade = best if verdict == "right" else CLAIMED
    host, batch = socket.gethostname(), token_hex(6)
    workspace.recorder.record_now(
        [
            NewRun(
                measurement.day,
                measurement.phase,
                measurement.llm,
                _milliseconds(ended),
                EXECUTION,
                grade,
                # Each run gets its own id: equal times at the same moment would look like copies of one
                # record.
                Details(attempt=f"{batch}-{place}", cpu_ms=ended.cpu_ms, host=host),
            )
            for place, ended in enumerate(ends, start=1)
        ]
    )
    outcome: Literal["solved", "unchecked"] = "solved" if verdict == "right" else "unchecked"
    times = [_milliseconds(ended) for ended in ends]
    typical = sorted(times)[len(times) // 2]
    workspace.record_run(measurement.day, measurement.phase, measurement.llm, outcome, typical, grade)
    width = half_width(ends)
    margin = f" ± {100 * width:.0f} %" if width < math.inf else ""
    return MeasuredRuns(
        outcome,
        times,
        f"Recorded {count(len(times), 'run')} of {measurement.llm}, median {typical} ms{margin}, {grade}.",
    )


class Solver:
    """A program that is run repeatedly, each time in a fresh folder."""

    def __init__(
        self,
        workspace: Workspace,
        measurement: Measurement,
        puzzle_input: Path,
        environment: Mapping[str, str],
        hidden: tuple[Path, ...],
        bubblewrap: str | None,
    ) -> None:
        if shutil.which(measurement.command[0]) is None:
            raise InvalidArgument(
                f"{measurement.command[0]} cannot be run: no such program.",
                next_step="Write the program and its arguments after --.",
            )
        self._measurement = measurement
        self._workspace = workspace
        self._command, self._needed = find_parts(measurement.command, Path.cwd())
        self._limits = measurement.limits
        self._input = puzzle_input
        # Our settings would reveal to the program where the answers are.
        self._environment = {
            name: value for name, value in environment.items() if not name.startswith(("AOC_", "BRIDGEHEAD_"))
        }
        folders = workspace.folders
        # Transcripts of agents contain answers too.
        ours = (folders.answers, folders.speeds, folders.attempts, folders.inputs, folders.bench)
        self._hidden = (*map(Path, ours), *hidden)
        self._bubblewrap = bubblewrap

    def try_other_inputs(self, answer: str) -> str:
        """Run the program on other inputs; return why it is no solver, or nothing."""
        day, phase = self._measurement.day, self._measurement.phase
        folders = self._workspace.folders
        others = layout.list_other_inputs(folders.inputs, day)
        for name in others:
            known = Path(folders.answers) / layout.answer_name(day, phase, name)
            if not known.is_file():
                continue
            other_input = Path(folders.inputs) / layout.input_name(day, name)
            _, problem, other = self.run(other_input.read_bytes())
            if problem or check_answer(folders.answers, day, phase, other, name) != "right":
                return f"It does not solve the input {other_input.name}. Its answer was not checked."
        if others:
            return ""
        data = self._input.read_bytes()
        for changed in (change_input(data), b""):
            _, problem, other = self.run(changed, Limits(PROBE_SECONDS, self._limits.memory_bytes))
            if problem or other != answer:
                return ""
        return "It prints the same for every input, so it is no solver. Its answer was not checked."

    def run(
        self, puzzle_input: bytes | None = None, limits: Limits | None = None
    ) -> tuple[EndedProgram, str, str]:
        """Run the program once; return its end, its problem and its answer."""
        with TemporaryDirectory(ignore_cleanup_errors=True) as fresh:
            folder = Path(fresh).resolve()
            copied_input = folder / "input.txt"
            if puzzle_input is None:
                shutil.copyfile(self._input, copied_input)
            else:
                copied_input.write_bytes(puzzle_input)
            out, err = BytesIO(), BytesIO()
            places = {"HOME": fresh, "TMPDIR": fresh, "TEMP": fresh, "TMP": fresh}
            job = Job(
                command=self._command,
                puzzle_input=copied_input,
                environment={**self._environment, **places},
                view=View(folder, tuple(self._needed), self._hidden),
                bubblewrap=self._bubblewrap,
                limits=limits or self._limits,
            )
            try:
                ended = run_program(job, out, err)
            except OSError as failure:
                raise InvalidArgument(
                    f"{self._command[0]} cannot be run: {failure.strerror or failure}.",
                    next_step="Write the program and its arguments after --.",
                ) from failure
        # The last line that is not empty: programs may print other things before their answer, such as a
        # progress bar, which returns the carriage.
        printed = out.getvalue().decode(errors="replace").replace("\r", "\n")
        lines = [line.strip() for line in printed.split("\n")]
        answer = next((line for line in reversed(lines) if line), "")
        problem = f"{ended.problem} It was ended." if ended.problem else ""
        if not problem and ended.status:
            problem = f"The program ended with status {ended.status}."
        stderr_tail = err.getvalue()[-MAX_SHOWN:].decode(errors="replace").strip()
        if problem and stderr_tail:
            problem += f" It said: {stderr_tail}"
        if not problem and not answer:
            problem = "The program printed no answer."
        return ended, problem, answer


def change_input(data: bytes) -> bytes:
    """Return another input of the same form: other digits, and the lines in the opposite order."""
    lines = data.translate(bytes.maketrans(b"123456789", b"234567891")).rstrip(b"\n").split(b"\n")
    return b"\n".join(reversed(lines)) + b"\n"


def half_width(ends: list[EndedProgram]) -> float:
    """Return half of the 95 % interval of the time, as a share of it; infinite for a single run."""
    if len(ends) < 2:  # noqa: PLR2004 - one run has no spread
        return math.inf
    logs = [math.log(max(ended.wall_ms, 0.001)) for ended in ends]
    spread = two_sided_quantile(0.05, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return math.expm1(min(spread, 700.0))


def _milliseconds(ended: EndedProgram) -> int:
    return max(1, round(ended.wall_ms))
