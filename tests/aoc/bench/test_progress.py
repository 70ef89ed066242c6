"""Progress: what a person sees while agents run."""

import io

from rich.console import Console

from bridgehead.aoc.bench.agent_run import Assignment
from bridgehead.aoc.bench.benchmark import Plan
from bridgehead.aoc.bench.progress import LiveProgress, PlainProgress, progress_table, run_text
from tests.aoc.bench.results import result, scripted

PLAN = Plan([scripted("fox"), scripted("owl")], [1, 2], 2)


def test_each_agent_has_a_row_with_what_it_has_done() -> None:
    console = Console(file=io.StringIO(), width=100)

    console.print(progress_table(PLAN, [result(), result(day=2, cost_usd=None)]))

    first, fox, owl = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first.split() == [
        "agent",
        "runs",
        "solved",
        "/",
        "failed",
        "wrong",
        "tokens",
        "in",
        "all",
        "cost",
        "in",
        "all",
    ]
    assert fox.split() == ["fox", "2", "of", "4", "2", "/", "2", "14", "2,000", "$0.50"]
    assert owl.split() == ["owl", "0", "of", "4", "0", "/", "0", "0"]


def test_in_a_pipe_each_run_is_a_line() -> None:
    out = io.StringIO()
    with PlainProgress(PLAN, out) as progress:
        progress.show([], Assignment(scripted("fox"), 1, 1))
        progress.show([result()], None)
        progress.warn("Look out.")

    assert out.getvalue() == (
        "1 of 8: fox, day 1, run 1: phase 1 solved in 1.5 s, 2 wrong answers; "
        "phase 2 failed in 9 s, 5 wrong answers; $0.50\nLook out.\n"
    )


def test_a_broken_limit_is_named() -> None:
    assert run_text(result(problem="It took over 60 s.")).endswith("; It took over 60 s.")


def test_on_a_terminal_the_table_says_what_runs_now() -> None:
    console = Console(file=io.StringIO(), width=100)
    progress = LiveProgress(PLAN)

    progress.show([result()], Assignment(scripted("owl"), 2, 1))
    console.print(progress.draw())

    assert "owl, day 2, run 1: " in console.file.getvalue()  # type: ignore[attr-defined]
    with progress:
        progress.show([result()], None)
