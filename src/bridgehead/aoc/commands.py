"""Commands: what a person types after `bridgehead aoc`: leaderboard, plot, check."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bridgehead.runtime.command_line import Parser

from .bridge import open_event
from .files.layout import FIRST, LAST
from .ranking.board import Board, Filters
from .settings import AocSettings

if TYPE_CHECKING:
    from .event import Event

FORMATS = ("table", "csv", "json", "markdown")
_ABOUT = """\
Speed records of Advent of Code puzzles, for people. Without a command it serves an MCP client on standard
input and output.

  bridgehead aoc leaderboard --day 1 --format markdown
  bridgehead aoc plot speeds.svg
  bridgehead aoc check
"""


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run one command and return the exit status; 1 where `check` finds a problem."""
    chosen = parser().parse_args(arguments)
    event = open_event(AocSettings(environment))
    status: int = chosen.run(event, chosen)
    return status


def parser() -> Parser:
    """Return the parser of the command line."""
    found = Parser(prog="bridgehead aoc", description=_ABOUT)
    commands = found.add_subparsers(required=True, metavar="COMMAND")
    board = commands.add_parser("leaderboard", help="rank the models by their median time")
    board.add_argument("--format", choices=FORMATS, default="table", help="how to write it (default: table)")
    board.set_defaults(run=_leaderboard)
    plot = commands.add_parser("plot", help="draw each model's times into a picture")
    plot.add_argument("file", metavar="FILE.svg|FILE.png", help="the picture to write")
    plot.set_defaults(run=_plot)
    for command in (board, plot):
        command.add_argument(
            "--day", type=int, choices=range(FIRST, LAST + 1), metavar="N", help="one day only"
        )
        command.add_argument("--phase", type=int, choices=(1, 2), help="one phase only")
        command.add_argument("--llm", metavar="NAME", help="one model only, by any of its names")
    check = commands.add_parser("check", help="read every file and list every problem")
    check.set_defaults(run=_check)
    return found


def _filters(chosen: Namespace) -> Filters:
    return Filters(chosen.day, chosen.phase, chosen.llm)


def _leaderboard(event: Event, chosen: Namespace) -> int:
    from .ranking import rendering

    board = event.board_now(_filters(chosen))
    if chosen.format == "table":
        _print_table(board)
    else:
        write = {"csv": rendering.csv, "json": rendering.json, "markdown": rendering.markdown}[chosen.format]
        sys.stdout.write(write(board))
    return 0


def _print_table(board: Board) -> None:
    from rich.console import Console

    from .ranking.rendering import NO_RUNS, UNEVEN, table

    console = Console()
    console.print(table(board) if board.rows else NO_RUNS)
    if not board.is_even:
        console.print(UNEVEN, style="dim")


def _plot(event: Event, chosen: Namespace) -> int:
    from .ranking.plot import draw

    drawn = draw(event, _filters(chosen), chosen.file)
    sys.stdout.write(f"{drawn}\n")
    return 0


def _check(event: Event, chosen: Namespace) -> int:
    from .files.check import check

    report = check(event.folders)
    for problem in report.problems:
        sys.stdout.write(f"{problem.path}: {problem.text}\n")
    found = len(report.problems)
    sys.stdout.write(f"{report.files} files read, {found or 'no'} problem{'' if found == 1 else 's'}\n")
    return 1 if found else 0
