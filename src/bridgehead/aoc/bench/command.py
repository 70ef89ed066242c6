"""Command: the options of `bridgehead aoc bench`, and the command itself."""

from __future__ import annotations

import os
import signal
import sys
from argparse import ArgumentTypeError, Namespace
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from bridgehead.runtime.command_line import Parser, number
from bridgehead.runtime.errors import InvalidArgument

from ..files.filters import Filters
from ..files.layout import FIRST, LAST
from ..ranking.terminal import print_board
from ..sandbox.isolation import find_bubblewrap
from ..settings import AocSettings, secret_paths
from ..workspace import Workspace, open_workspace
from .agent_run import BenchContext
from .agents import STARTER, plain_agents, read_agents
from .benchmark import Plan, check_plan, run_benchmark, uncounted_agents
from .demo import TEXTS, demo_agents, make_puzzles
from .progress import LiveProgress, PlainProgress, run_text
from .report import write_report

INTERRUPTED = 130
MAX_REPEATS = 1000
MAX_MINUTES = 100_000
"""Two months."""
MAX_DOLLARS = 1_000_000
"""A larger budget is a typing mistake."""


def add_options(parser: Parser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--agents", metavar="FILE", default="agents.toml", help="the agents (default: agents.toml)")
    add(
        "--agent",
        action="append",
        metavar="NAME=COMMAND",
        help="a program that gets the puzzle and the input on standard input and prints the answer, "
        "AOC_PHASE being the phase; instead of a file, any number of times",
    )
    add("--init", action="store_true", help="write such a file to begin with, and stop")
    add("--demo", action="store_true", help="invented puzzles and scripted agents, offline")
    add("--days", type=parse_days, metavar="DAYS", help="such as 1-5 or 1,3,7 (default: all that there are)")
    add(
        "--repeats",
        type=number(int, 1, MAX_REPEATS),
        metavar="N",
        help="runs of each agent on each day (default: 1)",
    )
    add(
        "--timeout",
        type=number(float, 0, MAX_MINUTES, is_above=True),
        default=30.0,
        metavar="MIN",
        help="limit of one run (default: 30)",
    )
    add(
        "--budget-usd",
        type=number(float, 0, MAX_DOLLARS, is_above=True),
        metavar="USD",
        help="begin no run after this much was spent",
    )
    add(
        "--budget-minutes",
        type=number(float, 0, MAX_MINUTES, is_above=True),
        metavar="MIN",
        help="begin no run after this much time",
    )
    add(
        "--folder", metavar="FOLDER", help="for journal, transcripts and report (default: bench/ in the data)"
    )
    add(
        "--no-isolation",
        action="store_true",
        help="run agents without bubblewrap: they can read and change your files",
    )


def parse_days(text: str) -> list[int]:
    """Parse `1-5,7`."""
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            span = range(int(first), int(last or first) + 1)
        except ValueError:
            span = range(0)
        if not span or span[0] < FIRST or span[-1] > LAST:
            raise ArgumentTypeError(
                f"{text!r} does not name days from {FIRST} to {LAST}, such as 1-5 or 1,3,7"
            )
        days.update(span)
    return sorted(days)


def run(workspace: Workspace, options: Namespace, settings: AocSettings) -> int:
    """Run the benchmark; return 1 if no run of some agent counted, and 130 if it was interrupted."""
    if options.init:
        path = Path(options.agents)
        if path.exists():
            raise InvalidArgument(f"{path} is there already.", next_step="Edit it, or name another file.")
        path.write_text(STARTER, encoding="utf-8")
        sys.stdout.write(f"Made {path}. Edit it, then run: bridgehead aoc bench --agents {path}\n")
        return 0
    bubblewrap = None if options.no_isolation else find_bubblewrap()
    if bubblewrap is None and not (options.no_isolation or options.demo):
        raise InvalidArgument(
            "Agents run with all permissions, and bubblewrap, which isolates them, is not available here.",
            next_step="Install it (apt install bubblewrap), or use --no-isolation inside a container.",
        )
    with ExitStack() as stack:
        if options.demo:
            workspace = _demo_workspace(stack, options)
            agents = demo_agents()
        else:
            agents = plain_agents(options.agent) if options.agent else read_agents(Path(options.agents))
        folder = Path(options.folder or workspace.folders.bench).expanduser().absolute()
        folder.mkdir(parents=True, exist_ok=True)
        plan = Plan(
            agents=agents,
            days=options.days or sorted(workspace.days()),
            repeats=options.repeats or (2 if options.demo else 1),
            budget_usd=options.budget_usd,
            budget_minutes=options.budget_minutes,
            year=workspace.year,
        )
        check_plan(plan, workspace)
        context = BenchContext(
            workspace=workspace,
            folder=folder,
            # The keys of model APIs are in the user's environment, not in our settings.
            environment=os.environ,
            hidden=secret_paths(settings),
            bubblewrap=bubblewrap,
            seconds=options.timeout * 60,
        )
        return _run_plan(plan, context, is_kept=bool(options.folder) or not options.demo)


def _demo_workspace(stack: ExitStack, options: Namespace) -> Workspace:
    """Open a temporary folder with invented puzzles: a demo never touches the user's own records."""
    data = Path(stack.enter_context(TemporaryDirectory(prefix="bridgehead-demo-")))
    make_puzzles(data / "data", options.days or list(TEXTS))
    # Next to a journal that is kept: without the key, a resumed demo would not trust the seals of its runs.
    state = Path(options.folder or data).expanduser().absolute() / "state"
    return open_workspace(
        AocSettings({"AOC_DATA_DIR": str(data / "data"), "BRIDGEHEAD_STATE_DIR": str(state)})
    )


def _run_plan(plan: Plan, context: BenchContext, *, is_kept: bool) -> int:
    out = sys.stdout
    if context.bubblewrap is None:
        sys.stderr.write("Not isolated: times count as measured at best.\n")
    progress = LiveProgress(plan) if out.isatty() else PlainProgress(plan)
    # On SIGTERM too, the agent's home directory has to be removed: it holds credentials.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with progress:
            results, why = run_benchmark(plan, context, progress)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. Run the same command again to go on; finished runs are kept.\n")
        return INTERRUPTED
    page = write_report(context.workspace, context.folder, results, why)
    board = context.workspace.board_now(Filters(measure="solving")).board
    print_board(board)
    if why:
        out.write(f"{why} Run the same command with a larger budget to go on.\n")
    if is_kept:
        out.write(f"Report: {page}\n")
    else:
        out.write("Next: `bridgehead aoc bench --init` writes an agents.toml, to compare your own agents.\n")
    uncounted = uncounted_agents(plan, results)
    for name in uncounted:
        broken = [result for result in results if result.agent == name]
        sys.stderr.write(f"No run of {name} counted: {run_text(broken[-1])}\n")
    return 1 if uncounted else 0
