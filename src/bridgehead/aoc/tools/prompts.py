"""Prompts: solve a day and time it honestly, and compare models."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from bridgehead.mcp import Arguments, Bridge, Context

from ..errors import contract_errors
from ..files.entries import Name
from ..files.filters import make_filters
from ..files.instructions import text_of_phase
from ..files.layout import Day, Phase
from ..ranking.wording import board_text, skipped_notes
from ..workspace import Workspace

LANGUAGES = (
    "C",
    "C#",
    "C++",
    "Clojure",
    "Elixir",
    "F#",
    "Go",
    "Haskell",
    "Java",
    "JavaScript",
    "Julia",
    "Kotlin",
    "Lua",
    "OCaml",
    "Perl",
    "PHP",
    "Python",
    "Ruby",
    "Rust",
    "Scala",
    "Swift",
    "TypeScript",
    "Zig",
)
MAX_ROWS = 30

# Each item names the tools of one approach: an item that names a hidden tool is left out.
_SOLVE = """\
Solve phase {phase} of day {day} of Advent of Code {year} in {language}:
- To let the server take the time, call start_attempt(day={day}, phase={phase}, llm_name=<your name>). It
  starts the clock and returns the text and your input. Do not read the puzzle in another way before: the time
  would only be claimed.
- Without an attempt, fetch_instruction returns the text, and aoc://day{day:02}/input is the input.
- Check your program on the example in the text, then run it on the input.
- Hand in what it printed with finish_attempt. After a wrong answer correct it and hand in again; the clock
  runs on, and tries are limited.
- Where no attempt takes the time, take it from a real clock, never estimate it: from the moment you read the
  puzzle until your program has printed the right answer. Record it once:
  record_speed(day={day}, phase={phase}, llm_name=<your name>, speed_ms=<milliseconds>)
- Do not look up an existing solution, and do not leave out failed attempts.
- How long the program itself runs is another measure, "execution"; `bridgehead aoc run` takes it.
If you could not solve it, say so and record nothing. An attempt then ends with finish_attempt and give_up."""

_COMPARE = """\
Compare these models by their recorded times{scope}.

{board}

1. Say first what was timed, and how far it can be trusted: verified, measured or only claimed.
2. Give each model's rank range and its ratio to the leader with the interval. Models whose ranges overlap
   may be equally fast; do not order them. Those without a rank cannot be compared.
3. Say how often each model's answer was right, where that is known: the ratio counts failures already.
4. Never compare solving time with execution time.{focus}
speed_history gives single runs; speed_leaderboard with a day and a phase gives the ranking of one puzzle."""


class SolveDay(Arguments):
    """Arguments of `solve_day`."""

    day: Day
    phase: Phase = 1
    language: Annotated[str, Meta(min_length=1, max_length=40, description="Programming language")] = "Python"


class CompareModels(Arguments):
    """Arguments of `compare_models`."""

    day: Day | UnsetType = UNSET
    phase: Phase | UnsetType = UNSET
    llm_name: Annotated[Name, Meta(description="One model to look at closely")] | UnsetType = UNSET


def declare(bridge: Bridge[Workspace]) -> None:
    """Declare the prompts and their completions."""
    bridge.prompt("Solve one phase of a day, time it honestly and record it.")(solve_day)
    bridge.prompt("Compare models by their recorded solving times.")(compare_models)
    for prompt in ("solve_day", "compare_models"):
        bridge.complete_prompt(prompt, "day")(complete_day)
        bridge.complete_prompt(prompt, "phase")(complete_phase)
    bridge.complete_prompt("solve_day", "language")(complete_language)
    bridge.complete_prompt("compare_models", "llm_name")(complete_llm)


def solve_day(args: SolveDay, ctx: Context[Workspace]) -> str:
    """Say how to solve a phase and to time it; the puzzle itself comes when the clock starts."""
    with contract_errors():
        text_of_phase(ctx.state.instruction(args.day), args.phase, ctx.state.year)  # raises without it
    return _SOLVE.format(language=args.language, day=args.day, phase=args.phase, year=ctx.state.year)


async def compare_models(args: CompareModels, ctx: Context[Workspace]) -> str:
    """Return the ranking, with instructions for reading it."""
    with contract_errors():
        view = await ctx.state.board(make_filters(args.day, args.phase), id(ctx.connection))
    board = view.board
    rows = board_text(board, board.rows[:MAX_ROWS]) if board.rows else "No runs are recorded yet."
    if len(board.rows) > MAX_ROWS:
        rows += f"\n{len(board.rows) - MAX_ROWS} more are not shown."
    rows = "\n".join([rows, *skipped_notes(view.skipped)])
    day = "" if args.day is UNSET else f" on day {args.day}"
    phase = "" if args.phase is UNSET else f" in phase {args.phase}"
    focus = "" if args.llm_name is UNSET else f"\n5. Look closely at {args.llm_name}."
    return _COMPARE.format(scope=day + phase, board=rows, focus=focus)


def complete_day(value: str, arguments: dict[str, str], ctx: Context[Workspace]) -> list[str]:
    """Complete a day that has a puzzle."""
    return [text for text in map(str, sorted(ctx.state.days())) if text.startswith(value)]


def complete_phase(value: str, arguments: dict[str, str], ctx: Context[Workspace]) -> list[str]:
    """Complete a phase."""
    return [text for text in ("1", "2") if text.startswith(value)]


def complete_language(value: str, arguments: dict[str, str], ctx: Context[Workspace]) -> list[str]:
    """Complete a programming language, ignoring case."""
    return [name for name in LANGUAGES if name.lower().startswith(value.lower())]


async def complete_llm(value: str, arguments: dict[str, str], ctx: Context[Workspace]) -> list[str]:
    """Complete the name of an LLM that has records, ignoring case."""
    return [name for name in await ctx.state.llms() if name.lower().startswith(value.lower())]
