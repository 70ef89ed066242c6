"""Commands: the command line `bridgehead aoc`."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import REMAINDER, Namespace
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bridgehead.runtime.command_line import Parser, number, with_settings
from bridgehead.runtime.errors import InvalidArgument, StorageError
from bridgehead.runtime.findings import exit_code, settings_table, show_findings
from bridgehead.runtime.http import Proxies

from .bench import command as bench
from .doctor import check, examine
from .files.entries import GRADES
from .files.filters import Filters, Skipped
from .files.history import Page
from .files.layout import FIRST, LAST, folders_in
from .files.names import clean_name
from .measuring import Measurement, measure
from .ranking import rendering, wording
from .ranking.plot import draw
from .ranking.standings import Board
from .sandbox.program import MEGABYTE, Limits
from .settings import AocSettings, find_session_file, secret_paths
from .site import client as site
from .site.cookie import parse_cookie, read_cookie, save_cookie, save_in_keyring
from .site.fetching import Fetcher
from .starter import make_starter
from .workspace import BoardView, Workspace, open_workspace

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

    from .database.transfer import TransferResult

MIN_RUNS = 5
"""Fewest runs of a solver; a time from fewer says little and may be a lucky one."""
_MOST = 1_000_000
_MAX_BOARD = 10**9
"""A private board has the id of its owner, and the site has millions of users."""
_DAY_SECONDS = 86_400
FORMATS = ("table", "csv", "json", "markdown")
_ABOUT = """\
Advent of Code puzzles and solve-speed records. Without a command it serves an MCP client on standard input
and output.

  bridgehead aoc init
  bridgehead aoc bench --demo
  bridgehead aoc run --llm my-model --day 1 --phase 1 -- python solution.py
  bridgehead aoc leaderboard --day 1 --format markdown
  bridgehead aoc plot speeds.svg
  bridgehead aoc check
  bridgehead aoc doctor
  bridgehead aoc settings
"""


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run one command; return the exit status, 1 if `check` or `run` finds a problem."""
    options = parser().parse_args(arguments)
    settings = AocSettings(environment)
    if options.run is None:
        from rich.console import Console

        console = Console(highlight=False)
        if options.command == "settings":
            console.print(settings_table(settings, environment))
            return 0
        findings = asyncio.run(examine(environment))
        show_findings(console, findings)
        return exit_code(findings)
    with ExitStack() as stack:
        database = None
        if settings.database_url is not None:
            from bridgehead.runtime.stores import postgres  # lazy: PostgreSQL

            database = stack.enter_context(postgres.opened_in_thread(settings.database_url))
        status: int = options.run(open_workspace(settings, database=database), options, settings)
    return status


def parser() -> Parser:
    """Return the parser of the command line."""
    top = Parser(prog="bridgehead aoc", description=_ABOUT)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    board = _add(
        commands, "leaderboard", _leaderboard, "rank the models", "leaderboard --day 1 --format markdown"
    )
    board.add_argument(
        "--format", choices=FORMATS, default="table", help="the output format (default: table)"
    )
    board.add_argument(
        "--order",
        choices=("speed", "solve_rate"),
        default="speed",
        help="what is ranked first (default: speed)",
    )
    plot = _add(commands, "plot", _plot, "draw each model's times into a picture", "plot speeds.svg")
    plot.add_argument("file", metavar="FILE.svg|.png|.pdf", help="the picture to write")
    plot.add_argument(
        "--theme", choices=("light", "dark"), default="light", help="its colours (default: light)"
    )
    history = _add(commands, "history", _history, "list single runs, newest first", "history --limit 20")
    history.add_argument("--limit", type=number(int, 1, _MOST), metavar="N", help="only the newest N")
    export = _add(commands, "export", _export, "write every attempt, one row each", "export --format csv")
    export.add_argument(
        "--format", choices=("json", "csv"), default="json", help="the output format (default: json)"
    )
    export.add_argument("--folder", metavar="FOLDER", help="move everything from the database to a folder")
    _add(commands, "import", _import, "move the records of the data folder into the database")
    for command in (board, plot, history, export):
        command.add_argument(
            "--day", type=int, choices=range(FIRST, LAST + 1), metavar="N", help="one day only"
        )
        command.add_argument("--phase", type=int, choices=(1, 2), help="one phase only")
        command.add_argument("--llm", metavar="NAME", help="one model only, by any of its names")
        command.add_argument("--measure", choices=("solving", "execution"), help="what was timed")
        command.add_argument("--grade", choices=GRADES, help="runs of one grade only")
    run = _add(
        commands,
        "run",
        _run,
        "time a program on a day's input, check its answer, record it",
        "run --llm my-model --day 1 --phase 1 -- python solution.py",
    )
    run.add_argument("--llm", metavar="NAME", required=True, help="the model that wrote the program")
    run.add_argument(
        "--day", type=int, choices=range(FIRST, LAST + 1), metavar="N", required=True, help="the day"
    )
    run.add_argument("--phase", type=int, choices=(1, 2), required=True, help="the phase")
    run.add_argument(
        "--runs",
        type=number(int, MIN_RUNS, _MOST),
        default=MIN_RUNS,
        metavar="K",
        help="how many are timed at least (5 or more; default: 5), until the time is known to 5 %%",
    )
    run.add_argument(
        "--max-runs",
        type=number(int, MIN_RUNS, _MOST),
        default=30,
        metavar="K",
        help="how many are timed at most (default: 30)",
    )
    run.add_argument(
        "--warm-up",
        type=number(int, 0, _MOST),
        default=1,
        metavar="K",
        help="how many untimed runs to do first (default: 1)",
    )
    run.add_argument(
        "--timeout",
        type=number(float, 0, _DAY_SECONDS, is_above=True),
        default=60.0,
        metavar="S",
        help="time limit of one run in seconds (default: 60)",
    )
    run.add_argument(
        "--memory",
        type=number(int, 1, _MOST),
        default=4096,
        metavar="MB",
        help="memory limit of one run, on Linux (default: 4096)",
    )
    run.add_argument("command", nargs=REMAINDER, metavar="-- COMMAND", help="the program and its arguments")
    bench.add_options(
        _add(commands, "bench", _bench, "run agents on puzzles, isolated, and compare them", "bench --demo")
    )
    init = _add(commands, "init", _init, "make a folder with a first puzzle")
    init.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="where (default: AOC_DATA_DIR if it is set, else this folder)",
    )
    _add(commands, "check", _check, "read every file and list every problem")
    # `run=None`: `main` handles these before it opens a workspace.
    for name, about in (
        ("doctor", "check the settings, the folders and every file"),
        ("settings", "list every setting with its current value"),
    ):
        commands.add_parser(name, help=about).set_defaults(run=None, command=name)
    fetch = _add(
        commands,
        "fetch",
        _fetch,
        "fetch a day's text and input, or a private leaderboard, politely",
        "fetch --day 1",
    )
    what = fetch.add_mutually_exclusive_group(required=True)
    what.add_argument("--day", type=int, choices=range(FIRST, LAST + 1), metavar="N", help="the day")
    what.add_argument(
        "--leaderboard", type=number(int, 1, _MAX_BOARD), metavar="ID", help="a private leaderboard of yours"
    )
    fetch.add_argument(
        "--again", action="store_true", help="fetch again, for a phase that was unlocked since"
    )
    cookie = _add(commands, "cookie", _cookie, "store your session cookie for fetch")
    cookie.add_argument("--keyring", action="store_true", help="in the system's keyring instead of a file")
    return top


def _add(commands: Any, name: str, run: Callable[..., int], about: str, example: str = "") -> Parser:
    made: Parser = commands.add_parser(name, help=about, example=example)
    made.set_defaults(run=run)
    return made


def _filters(options: Namespace, order: Any = "speed") -> Filters:
    return Filters(options.day, options.phase, options.llm, options.measure, order, options.grade)


# --- boards and runs ---------------------------------------------------------------------------------------


def _leaderboard(workspace: Workspace, options: Namespace, _settings: AocSettings) -> int:
    view = workspace.board_now(_filters(options, options.order))
    board = replace(view.board, rows=view.rows)
    if options.format == "table":
        _print_table(view, board, options)
    elif options.format == "csv":
        sys.stdout.write(rendering.csv(board.rows))
    else:
        sys.stdout.write(rendering.json(board) if options.format == "json" else rendering.markdown(board))
    _name_skipped(view.skipped)
    return 0


def _print_table(view: BoardView, board: Board, options: Namespace) -> None:
    from .ranking.terminal import print_board  # lazy: rich, 40 ms

    if not board.rows:
        sys.stdout.write(f"{wording.no_runs(options.llm, view.known, options.day, view.days)}\n")
        if not view.known:
            sys.stdout.write("`bridgehead aoc bench --demo` shows a board with invented agents.\n")
        return
    print_board(board)


def _name_skipped(skipped: list[Skipped]) -> None:
    for file in skipped:
        sys.stderr.write(f"bridgehead aoc: skipped: {file.problem} Run `bridgehead aoc check`.\n")


def _plot(workspace: Workspace, options: Namespace, _settings: AocSettings) -> int:
    drawn = draw(workspace, _filters(options), options.file, options.theme)
    sys.stdout.write(f"{drawn}\n")
    _name_skipped(workspace.board_now(_filters(options)).skipped)
    return 0


def _history(workspace: Workspace, options: Namespace, _settings: AocSettings) -> int:
    if options.limit is None:
        runs, skipped = workspace.runs_now(_filters(options))
        page = Page(runs, len(runs), None)
    else:
        view = workspace.history_now(_filters(options), options.limit)
        page, skipped = view.page, view.skipped
    text = wording.history_text(page)
    sys.stdout.write(f"{text or 'No runs are recorded for this.'}\n")
    _name_skipped(skipped)
    return 0


def _export(workspace: Workspace, options: Namespace, settings: AocSettings) -> int:
    if options.folder is not None:
        from .database.transfer import export_folder  # lazy: PostgreSQL

        database = _need_database(workspace)
        path = Path(options.folder).expanduser().absolute()
        path.mkdir(parents=True, exist_ok=True)
        result = export_folder(workspace, folders_in(str(path), settings.year), database)
        return _print_transfer(result, f"to {path}")
    rows, skipped = workspace.attempts_now(_filters(options))
    is_json = options.format == "json"
    sys.stdout.write(rendering.json(rows) if is_json else rendering.csv(rows, rendering.ATTEMPT_COLUMNS))
    _name_skipped(skipped)
    return 0


def _import(workspace: Workspace, _chosen: Namespace, _settings: AocSettings) -> int:
    from .database.transfer import import_folder  # lazy: PostgreSQL

    return _print_transfer(
        import_folder(workspace, _need_database(workspace)), f"from {workspace.folders.speeds}"
    )


def _need_database(workspace: Workspace) -> postgres.Database:
    if workspace.database is None:
        raise InvalidArgument(
            "There is no database to move records to or from.",
            next_step="Set BRIDGEHEAD_DATABASE_URL to a postgresql:// address.",
        )
    return workspace.database


def _print_transfer(result: TransferResult, where: str) -> int:
    sys.stdout.write(
        f"Moved {result.records} records and {result.steps} steps of attempts {where}; "
        f"{result.aliases} aliases. Existing records and steps are unchanged.\n"
    )
    for problem in result.problems:
        sys.stderr.write(f"bridgehead aoc: skipped: {problem}\n")
    return 1 if result.problems else 0


# --- files -------------------------------------------------------------------------------------------------


def _check(workspace: Workspace, _chosen: Namespace, _settings: AocSettings) -> int:
    report = check(workspace.folders)
    for problem in report.problems:
        sys.stdout.write(f"{problem.path}: {problem.text}\n")
    count = len(report.problems)
    files = f"{report.files} file{'' if report.files == 1 else 's'}"
    sys.stdout.write(f"{files} read, {count or 'no'} problem{'' if count == 1 else 's'}\n")
    return 1 if count else 0


def _init(workspace: Workspace, options: Namespace, settings: AocSettings) -> int:
    # Without an argument: the configured folder, where a year may have one of its own; else the current one.
    named = options.folder or settings.data_dir
    folder = Path(named or Path.cwd()).expanduser().absolute()
    if settings.data_dir and not options.folder:
        folder = Path(workspace.folders.inputs).parent
    try:
        made = make_starter(folder)
    except OSError as failure:
        raise StorageError(
            f"{folder} cannot be written to: {failure.strerror or failure}.",
            next_step="Name a folder of yours: bridgehead aoc init FOLDER",
        ) from failure
    sys.stdout.write("".join(f"made {path}\n" for path in made) or f"{folder} has everything already\n")
    # In the current folder, commands find it by themselves; a client starts its servers elsewhere.
    is_here = folder == Path.cwd() and not settings.data_dir
    setting = {} if settings.data_dir and not options.folder else {"AOC_DATA_DIR": str(folder)}
    first = with_settings({} if is_here else setting, "bridgehead call aoc fetch_instruction day=1")
    second = with_settings(setting, "bridgehead install CLIENT aoc")
    sys.stdout.write(f"Next:\n  {first}\n  {second}\n")
    return 0


def _run(workspace: Workspace, options: Namespace, settings: AocSettings) -> int:
    # argparse keeps the `--` in front of the remaining words.
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise InvalidArgument(
            "There is no program to run.", next_step="Write it after --, with its arguments."
        )
    limits = Limits(seconds=options.timeout, memory_bytes=options.memory * MEGABYTE)
    measurement = Measurement(
        llm=clean_name(options.llm),
        day=options.day,
        phase=options.phase,
        command=command,
        runs=options.runs,
        max_runs=options.max_runs,
        warm_up=options.warm_up,
        limits=limits,
    )

    def report(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    # The whole environment, not just our settings: a solver's language may need its own variables.
    outcome = measure(workspace, measurement, report, os.environ, secret_paths(settings))
    sys.stdout.write(f"{outcome.summary}\n")
    return 0 if outcome.outcome != "failed" else 1


def _bench(workspace: Workspace, options: Namespace, settings: AocSettings) -> int:
    return bench.run(workspace, options, settings)


# --- the site ----------------------------------------------------------------------------------------------


def _fetch(workspace: Workspace, options: Namespace, settings: AocSettings) -> int:
    if not settings.contact:
        raise InvalidArgument(
            "AOC_CONTACT is not set.",
            next_step="The site wants to know whom to write to: set it to your e-mail address.",
        )
    path = find_session_file(settings)
    # HTTPS_PROXY and the like are not our settings; every program reads them.
    proxy = Proxies.from_environment(os.environ).choose(site.SITE_URL)
    pause = path.parent / "requests"
    client = site.SiteClient(site.SITE_URL, read_cookie(path), settings.contact, pause, proxy)

    def report(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    fetcher = Fetcher(workspace, client, report)
    if options.leaderboard is not None:
        fetcher.fetch_board(options.leaderboard)
    else:
        fetcher.fetch_day(options.day, again=options.again)
    return 0


def _cookie(_workspace: Workspace, options: Namespace, settings: AocSettings) -> int:
    # On Windows an input of NUL counts as a terminal, and getpass would wait there for ever.
    is_person = sys.stdin.isatty() and (sys.platform != "win32" or sys.stderr.isatty())
    cookie = parse_cookie(getpass("Session cookie (not shown): ") if is_person else sys.stdin.readline())
    if options.keyring:
        save_in_keyring(cookie)
        sys.stdout.write("Kept in the keyring.\n")
    else:
        path = find_session_file(settings)
        save_cookie(path, cookie)
        sys.stdout.write(f"Kept in {path}, which only you can read.\n")
    return 0
