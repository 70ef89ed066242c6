"""Report: the page at the end of a benchmark."""

from importlib.util import find_spec

from bridgehead.aoc.bench.agent_run import BenchContext
from bridgehead.aoc.bench.benchmark import record
from bridgehead.aoc.bench.report import write_report
from tests.aoc.bench.results import SOLVED, result


def test_the_page_has_the_board_the_agents_every_run_and_how_it_was_made(context: BenchContext) -> None:
    runs = [
        result(agent, day, phases=[SOLVED], version=f"{agent} 1")
        for agent in ("fox", "o|wl")
        for day in (1, 2, 3)
    ]
    for run in runs:
        record(context.workspace, run)

    page = write_report(context.workspace, context.folder, runs, "The budget of $1 is used up ($1.50).")

    text = page.read_text(encoding="utf-8")
    assert text.startswith(
        "# Advent of Code 2025: agents compared\n\nEnded early: The budget of $1 is used up"
    )
    if find_spec("matplotlib"):  # an extra
        assert "[![The board as a picture](report.svg)](report.svg)" in text
        assert (context.folder / "report.svg").stat().st_size > 1000
    assert "| 1–2 | fox | 1.00× |" in text
    assert r"| o\|wl | o\|wl 1 | fox-large | Python | 3 | 0 |" in text
    assert "- fox, day 2, run 1: phase 1 solved in 1.5 s, 2 wrong answers; $0.50 (`x.out`)" in text
    assert "- 6 runs, isolated by bubblewrap, each in an empty home directory" in text
    assert "- host: here; prompt: abc" in text


def test_what_agents_call_themselves_is_shown_and_not_run(context: BenchContext) -> None:
    run = result("<img src=x>", version="[a](javascript:b)", model="`x` & <b>", problem="<script>")
    record(context.workspace, run)

    text = write_report(context.workspace, context.folder, [run], "").read_text(encoding="utf-8")

    assert r"\<img src=x\>" in text
    assert r"\[a\](javascript:b)" in text
    assert r"\<script\>" in text


def test_runs_without_isolation_are_said_to_be(context: BenchContext) -> None:
    runs = [result(is_isolated=False)]
    record(context.workspace, runs[0])

    text = write_report(context.workspace, context.folder, runs, "").read_text(encoding="utf-8")

    assert "not isolated, so times are measured at best" in text
