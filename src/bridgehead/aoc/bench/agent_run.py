"""Agent run: one agent on one day, from an empty home directory to the result. Blocks.

The agent's bridge serves a folder that has only this day. Only that bridge's records count: when it handed
out the puzzle, which answers it got, and when the right one came.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import replace

from ..files import layout
from ..files.attempts import ANSWERED, ENDED, MAX_TRIES, AttemptStep
from ..files.entries import CLAIMED, MEASURED, VERIFIED, Grade, format_timestamp
from ..sandbox.isolation import View, find_parts
from ..sandbox.program import MEGABYTE, Job, Limits, run_program
from ..settings import AocSettings
from ..workspace import Workspace, open_workspace
from . import relay
from .agents import Agent, environment_of, prepare_home
from .gateway import Gateway
from .journal import PhaseResult, RunResult, run_id
from .usage import read_usage

PROMPT = """\
Solve day {day} of Advent of Code with the tools of the MCP server "aoc". It has {phases}.
For each phase, in order:
1. Call start_attempt with day {day}, the phase, and llm_name "{name}". It starts the clock and returns the
   puzzle's text and your input. Do not look for either anywhere else, and read neither before.
2. Work out the answer for the whole input. If you can run programs, write one in {language} and run it.
3. Hand the answer in with finish_attempt. After a wrong answer, correct it and hand in again; there are
   5 tries.
If you cannot solve a phase, call finish_attempt with give_up, and stop. Nobody can answer questions."""
PROMPT_HASH = sha256(PROMPT.encode()).hexdigest()[:12]
MAX_OUTPUT = 64 * MEGABYTE
VERSION_SECONDS = 30.0
SCRATCH = "bridgehead-bench-"
LOCK_NAME = "lock"
"""Locked during a run; the system releases the lock if the benchmark is killed."""


class Assignment(Struct, frozen=True):
    """The agent, day and repeat of one run."""

    agent: Agent
    day: int
    repeat: int
    year: int = 0

    @property
    def id(self) -> str:
        """The id of the run; it changes with the prompt and the agent."""
        agent = self.agent
        setup = [self.year, PROMPT_HASH, agent.command, agent.model, agent.language, agent.set]
        return run_id(agent.name, self.day, self.repeat, json.dumps(setup, sort_keys=True))


class BenchContext(Struct, frozen=True):
    """Settings common to all runs of a benchmark."""

    workspace: Workspace
    folder: Path
    """The folder of the journal, transcripts and report."""
    environment: Mapping[str, str]
    hidden: tuple[Path, ...]
    bubblewrap: str | None
    seconds: float
    """The time limit of a run."""


def run_agent(assignment: Assignment, context: BenchContext, version: str | None) -> RunResult:
    """Run an agent once, and return the result."""
    agent, day = assignment.agent, assignment.day
    with ExitStack() as stack:
        scratch = stack.enter_context(TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True))
        root = Path(scratch).resolve()
        stack.enter_context(FileLock(root / LOCK_NAME))
        settings = _copy_puzzle(context.workspace, day, root / "bridge")
        # The bridge's folder has the answers: hide it explicitly, since isolation may not hide temporary
        # folders.
        context = replace(context, hidden=(*context.hidden, root / "bridge"))
        folder = root / "agent"
        home, current = folder / "home", folder / "work"
        current.mkdir(parents=True)
        transcript = context.folder / "transcripts" / f"{assignment.id}.out"
        transcript.parent.mkdir(exist_ok=True)  # its parent's disk may be unmounted
        with (
            Gateway(settings, root / "bridge") as gateway,
            transcript.open("w+b") as out,
            transcript.with_suffix(".err").open("wb") as err,
        ):
            config = prepare_home(home, gateway.server_command, agent)
            phases = "two phases" if 2 in phases_of(context.workspace, day) else "one phase"  # noqa: PLR2004
            prompt = PROMPT.format(day=day, phases=phases, name=agent.name, language=agent.language)
            words = {"{prompt}": prompt, "{mcp_config}": str(config), "{home}": str(home)}
            job = _job(agent, [_fill(word, words) for word in agent.command], home, current, context)
            began = time.time()
            ended = run_program(job, out, err)
            out.seek(0)
            printed = out.read().decode(errors="replace")
        attempts = open_workspace(AocSettings(settings)).attempts.steps(day)
    used = read_usage(printed)
    return RunResult(
        id=assignment.id,
        agent=agent.name,
        version=version,
        model=used.model or agent.model,
        language=agent.language,
        day=day,
        repeat=assignment.repeat,
        prompt_hash=PROMPT_HASH,
        started=format_timestamp(began),
        seconds=round(ended.wall_ms / 1000, 3),
        is_isolated=context.bubblewrap is not None,
        phases=[
            judge(attempts, phase, ended.wall_ms, is_isolated=context.bubblewrap is not None)
            for phase in phases_of(context.workspace, day)
        ],
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        status=ended.status,
        problem=ended.problem,
        transcript=str(transcript),
        host=socket.gethostname(),
    )


def remove_leftovers() -> None:
    """Remove folders that killed benchmarks left: they hold answers and copies of credentials."""
    for lock in Path(gettempdir()).glob(f"{SCRATCH}*/{LOCK_NAME}"):
        with suppress(OSError, Timeout):
            # Another user's file could be a link to one of ours, which locking would truncate.
            if sys.platform != "win32" and lock.parent.lstat().st_uid != os.geteuid():
                continue
            FileLock(lock).acquire(timeout=0).lock.release()
            shutil.rmtree(lock.parent, ignore_errors=True)


def _fill(word: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        word = word.replace(name, value)
    return word


def phases_of(workspace: Workspace, day: int) -> list[int]:
    """List the phases of a day whose puzzle text is there."""
    return [1] if workspace.instruction(day).phase2 is None else [1, 2]


def _copy_puzzle(workspace: Workspace, day: int, folder: Path) -> dict[str, str]:
    """Copy one day to a folder; return the settings of a bridge that serves and records there."""
    data = folder / "data"
    folders, copies = workspace.folders, layout.folders_in(str(data), workspace.year)
    texts = [layout.legacy_name(day), *(layout.markdown_name(day, phase) for phase in (1, 2))]
    answers = [layout.answer_name(day, phase) for phase in (1, 2)]
    for source, target, names in (
        (folders.instructions, copies.instructions, texts),
        (folders.inputs, copies.inputs, [layout.input_name(day)]),
        (folders.answers, copies.answers, answers),
    ):
        Path(target).mkdir(parents=True)
        for name in names:
            if (Path(source) / name).is_file():
                shutil.copyfile(Path(source) / name, Path(target) / name)
    system = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {
        **system,
        "AOC_DATA_DIR": str(data),
        "AOC_YEAR": str(workspace.year),
        "AOC_TOOLSETS": "solver",
        # All connections of the agent are one caller: a text that one of them has read is known to all.
        "AOC_CALLER": "agent",
        "BRIDGEHEAD_STATE_DIR": str(folder / "state"),
    }


def _job(agent: Agent, command: list[str], home: Path, current: Path, context: BenchContext) -> Job:
    words, needed = find_parts(command, Path.cwd())
    # The relay runs inside the isolation, with our Python.
    python_paths = (Path(sys.prefix), Path(sys.base_prefix), Path(relay.__file__))
    folders = context.workspace.folders
    # Puzzle texts too: an agent that read them here would begin before the clock starts.
    puzzles = (folders.instructions, folders.inputs, folders.answers)
    secrets = map(Path, (*puzzles, folders.speeds, folders.attempts, folders.bench))
    view = View(
        folder=home.parent,
        current=current,
        readable=(*needed, *python_paths),
        hidden=(*secrets, context.folder, *context.hidden),
        has_network=True,
    )
    return Job(
        command=words,
        puzzle_input=Path(os.devnull),
        environment=environment_of(agent, context.environment, home),
        view=view,
        bubblewrap=context.bubblewrap,
        limits=Limits(
            seconds=context.seconds, output_bytes=MAX_OUTPUT, processes=512, memory_bytes=16384 * MEGABYTE
        ),
    )


def judge(steps: list[AttemptStep], phase: int, wall_ms: float, *, is_isolated: bool) -> PhaseResult:
    """Return the outcome of a phase. Only the first attempt counts: later ones have seen the puzzle.

    Answers in other attempts count as tries too: an agent could guess with them.
    """
    best: Grade = VERIFIED if is_isolated else MEASURED
    phase_steps = [step for step in steps if step.phase == phase and step.outcome != "given"]
    if not phase_steps:
        return PhaseResult(phase, "not started", None, 0, best)
    first = phase_steps[0].attempt
    end = next((step for step in phase_steps if step.attempt == first and step.outcome in ENDED), None)
    until_end = phase_steps if end is None else phase_steps[: phase_steps.index(end) + 1]
    wrong = sum(step.outcome == "wrong" for step in until_end)
    tries = sum(step.outcome in ANSWERED for step in until_end)
    if end is None or end.outcome != "solved" or tries > MAX_TRIES:
        # Also a failure after looking at the puzzle: else an agent could look first, and choose its puzzles.
        return PhaseResult(phase, "failed", round(wall_ms) if end is None else end.time, wrong, best)
    # Our own bridge took the time and checked the answer; isolation rules out any other source.
    return PhaseResult(phase, "solved", end.time, wrong, best if end.grade == MEASURED else CLAIMED)


def find_version(agent: Agent, context: BenchContext) -> str | None:
    """Ask an agent for its version; None if unknown."""
    if agent.version is not None or agent.preset is None:
        return agent.version

    with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        home = Path(scratch).resolve() / "home"
        (home / "tmp").mkdir(parents=True)
        job = _job(agent, [agent.command[0], "--version"], home, home, context)
        out = BytesIO()
        ended = run_program(replace(job, limits=Limits(VERSION_SECONDS)), out, BytesIO())
    lines = out.getvalue().decode(errors="replace").split("\n")
    return lines[0].strip()[:80] or None if ended.status == 0 else None
