"""Benchmark: order, budget, resuming, and what is recorded."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bridgehead.aoc.bench import benchmark
from bridgehead.aoc.bench.agent_run import Assignment, BenchContext
from bridgehead.aoc.bench.benchmark import (
    Plan,
    check_plan,
    exhausted_budget,
    record,
    run_benchmark,
    uncounted_agents,
)
from bridgehead.aoc.bench.journal import RunJournal, RunResult
from bridgehead.aoc.bench.progress import run_text
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.ranking.wording import notes
from bridgehead.runtime.errors import InvalidArgument
from tests.aoc.bench.results import FAILED, NOT_STARTED, SOLVED, result, scripted


class Silent:
    """Remembers what was begun."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int, int]] = []
        self.warnings: list[str] = []

    def show(self, results: list[RunResult], current: Assignment | None) -> None:
        if current is not None:
            self.begun.append((current.agent.name, current.day, current.repeat))

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def plan(days: list[int], repeats: int = 1) -> Plan:
    return Plan([scripted("fox"), scripted("owl")], days, repeats)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that take no time: what an agent does is tested with agent runs."""

    def play(assignment: Assignment, context: BenchContext, version: str | None) -> RunResult:
        agent = assignment.agent
        cost = None if agent.name == "gull" else 0.5
        return result(agent.name, assignment.day, assignment.repeat, id=assignment.id, cost_usd=cost)

    monkeypatch.setattr(benchmark, "run_agent", play)


def test_all_agents_have_had_the_same_runs_when_it_is_cut_short() -> None:
    order = [(one.agent.name, one.day, one.repeat) for one in plan([1, 2], 2).assignments]

    assert order[:4] == [("fox", 1, 1), ("owl", 1, 1), ("fox", 2, 1), ("owl", 2, 1)]
    assert len(order) == 8


@pytest.mark.usefixtures("played")
def test_a_benchmark_that_was_stopped_goes_on_where_it_was(context: BenchContext) -> None:
    stopped = replace(plan([1, 2]), budget_usd=0.9)

    first, why = run_benchmark(stopped, context, Silent())
    watcher = Silent()
    second, none = run_benchmark(plan([1, 2]), context, watcher)

    assert (len(first), why) == (2, "The budget of $0.9 is used up ($1.00).")
    assert watcher.begun == [("fox", 2, 1), ("owl", 2, 1)]
    assert (len(second), none) == (4, "")


@pytest.mark.usefixtures("played")
def test_a_run_that_was_cut_off_is_run_again_and_those_before_it_are_kept(
    context: BenchContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    play: Any = getattr(benchmark, "run_agent")  # noqa: B009 - what `played` has put there

    def interrupt(assignment: Assignment, context: BenchContext, version: str | None) -> RunResult:
        if assignment.agent.name == "owl":
            raise KeyboardInterrupt
        played: RunResult = play(assignment, context, version)
        return played

    monkeypatch.setattr(benchmark, "run_agent", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(plan([1]), context, Silent())
    monkeypatch.setattr(benchmark, "run_agent", play)
    watcher = Silent()
    run_benchmark(plan([1]), context, watcher)

    assert watcher.begun == [("owl", 1, 1)]


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize(
    "changes",
    [{"model": "larger"}, {"command": ["other", "{prompt}"]}, {"language": "Rust"}, {"set": {"A": "1"}}],
)
def test_an_agent_that_was_changed_is_run_again(context: BenchContext, changes: dict[str, Any]) -> None:
    fox = scripted("fox")
    run_benchmark(Plan([fox], [1], 1), context, Silent())
    begun = []
    for agent in (replace(fox, files=["~/.key"]), replace(fox, **changes)):
        watcher = Silent()
        run_benchmark(Plan([agent], [1], 1), context, watcher)
        begun.append(watcher.begun)

    assert begun == [[], [("fox", 1, 1)]]


@pytest.mark.usefixtures("played")
def test_an_agent_that_reports_no_cost_is_named_once_if_there_is_a_budget_in_dollars(
    context: BenchContext,
) -> None:
    agents = Plan([scripted("gull"), scripted("fox")], [1, 2], 1)
    watchers = [Silent(), Silent()]
    run_benchmark(replace(agents, budget_usd=100.0), context, watchers[0])
    run_benchmark(replace(agents, days=[3]), context, watchers[1])

    assert watchers[0].warnings == [
        "gull reported no cost, so --budget-usd does not limit it; --budget-minutes does."
    ]
    assert watchers[1].warnings == []


@pytest.mark.usefixtures("played")
def test_a_crash_between_the_journal_and_the_records_loses_nothing(context: BenchContext) -> None:
    assert context.workspace.seals is not None
    written = result("fox", id=Assignment(scripted("fox"), 1, 1).id)
    RunJournal(context.folder, context.workspace.seals).append(written)

    run_benchmark(plan([1]), context, Silent())

    rows = context.workspace.board_now(Filters()).rows
    assert {row.llm: (row.solved, row.failed) for row in rows} == {"fox": (1, 1), "owl": (1, 1)}


@pytest.mark.usefixtures("played")
def test_a_run_that_was_written_into_the_journal_by_hand_is_claimed(context: BenchContext) -> None:
    forged = result("fox", id=Assignment(scripted("fox"), 1, 1).id)
    (context.folder / "journal.jsonl").write_bytes(msgspec.json.encode(forged) + b"\n")

    run_benchmark(plan([1]), context, Silent())

    runs, _ = context.workspace.runs_now(Filters())
    assert {run.llm: run.grade for run in runs} == {"fox": "claimed", "owl": "verified"}


@pytest.mark.usefixtures("played")
def test_each_year_has_its_own_runs_in_a_folder_that_they_share(context: BenchContext) -> None:
    watchers = [Silent(), Silent()]
    for year, watcher in zip((2024, 2025), watchers, strict=True):
        run_benchmark(replace(plan([1]), year=year), context, watcher)

    assert watchers[0].begun == watchers[1].begun == [("fox", 1, 1), ("owl", 1, 1)]


@pytest.mark.parametrize(("status", "failed"), [(0, 1), (1, 0)])
def test_an_agent_that_does_not_begin_has_not_solved_unless_it_is_broken(
    context: BenchContext, status: int, failed: int
) -> None:
    """Else an agent could look at a puzzle first, and begin only what it can solve."""
    phases = [NOT_STARTED, replace(NOT_STARTED, phase=2)]
    record(context.workspace, result())
    record(context.workspace, result(day=2, phases=phases, status=status))

    rows = context.workspace.board_now(Filters(day=2)).rows
    assert sum(row.failed for row in rows) == failed


@pytest.mark.usefixtures("played")
def test_an_agent_that_was_broken_is_run_again(
    context: BenchContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    play: Any = getattr(benchmark, "run_agent")  # noqa: B009 - what `played` has put there

    def fail(assignment: Assignment, context: BenchContext, version: str | None) -> RunResult:
        begun: RunResult = play(assignment, context, version)
        return replace(begun, phases=[NOT_STARTED], status=1)

    monkeypatch.setattr(benchmark, "run_agent", fail)
    (failed, _), _ = run_benchmark(plan([1]), context, Silent())
    monkeypatch.setattr(benchmark, "run_agent", play)
    watchers = [Silent(), Silent()]
    for watcher in watchers:
        run_benchmark(plan([1]), context, watcher)

    assert failed.is_broken
    assert [len(watcher.begun) for watcher in watchers] == [2, 0]


@pytest.mark.usefixtures("played")
def test_a_run_that_stays_broken_is_tried_twice_more_and_then_given_up(
    context: BenchContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    play: Any = getattr(benchmark, "run_agent")  # noqa: B009 - what `played` has put there

    def fail(assignment: Assignment, context: BenchContext, version: str | None) -> RunResult:
        begun: RunResult = play(assignment, context, version)
        return replace(begun, phases=[NOT_STARTED], status=1)

    monkeypatch.setattr(benchmark, "run_agent", fail)
    watchers = [Silent() for _ in range(5)]
    results: list[RunResult] = []
    for watcher in watchers:
        results, _ = run_benchmark(plan([1]), context, watcher)

    assert [len(watcher.begun) for watcher in watchers] == [2, 2, 2, 0, 0]
    assert [run.times_broken for run in results] == [3, 3]
    assert uncounted_agents(plan([1]), results) == ["fox", "owl"]
    assert "broken 3×, status 1: it printed nothing; it is not tried again" in run_text(results[0])
    assert context.workspace.board_now(Filters()).rows == []


def test_the_last_line_of_a_broken_run_is_told(tmp_path: Path) -> None:
    transcript = tmp_path / "x.out"
    transcript.write_text("working\nplease log in\n\n")
    broken = result(phases=[NOT_STARTED], status=1, transcript=str(transcript))

    assert "status 1: please log in; it will be run again" in run_text(broken)
    transcript.with_suffix(".err").write_text("no API key\x1b[0m\n")
    assert "status 1: no API key[0m; it" in run_text(broken)


def test_recording_a_run_again_changes_nothing(context: BenchContext) -> None:
    for _ in range(2):
        record(context.workspace, result())

    (row,) = context.workspace.board_now(Filters()).rows
    assert (row.n, row.verified, row.solved, row.failed, row.wrong) == (1, 1, 1, 1, 7)
    assert (row.tokens, row.cost_usd) == (500, 0.25)
    (run,), _ = context.workspace.runs_now(Filters())
    assert (run.grade, run.speed_ms, run.llm) == ("verified", 1500, "fox")


def test_every_record_says_where_it_came_from(context: BenchContext) -> None:
    record(context.workspace, result())

    (entry,) = context.workspace.records.entries([1])[1]
    details = entry.details
    assert (details.agent, details.version, details.model, details.language) == (
        "fox",
        "1.2",
        "fox-large",
        "Python",
    )
    assert (details.prompt_hash, details.transcript, details.host) == ("abc", "transcripts/x.out", "here")
    assert (details.tries, details.wrong, details.tokens, details.cost_usd) == (3, 2, 500, 0.25)


def test_an_export_has_every_attempt_with_the_agent_that_made_it(context: BenchContext) -> None:
    record(context.workspace, result())

    rows, _ = context.workspace.attempts_now(Filters())

    assert sorted((row.phase, row.outcome, row.speed_ms, row.tries, row.wrong) for row in rows) == [
        (1, "solved", 1500, 3, 2),
        (2, "failed", 9000, 5, 5),
    ]
    for row in rows:
        assert (row.llm, row.agent, row.model, row.version) == ("fox", "fox", "fox-large", "1.2")
        assert (row.tokens, row.cost_usd, row.withdrawn) == (500, 0.25, False)
    assert context.workspace.attempts_now(Filters(llm="owl"))[0] == []


def test_a_name_that_ran_with_another_model_is_noted_on_the_board(context: BenchContext) -> None:
    for day, model in ((1, "fox-large"), (2, "fox-small")):
        record(context.workspace, result(day=day, model=model))

    board = context.workspace.board_now(Filters()).board

    assert "fox ran with several models, in one row: fox-large, fox-small." in notes(board)


def test_a_budget_is_of_all_runs_of_the_plan() -> None:
    done = [result(), result(day=2, cost_usd=None)]

    assert not exhausted_budget(replace(plan([1]), budget_usd=0.6, budget_minutes=2), done)
    assert "The budget of $0.5 is used up" in exhausted_budget(replace(plan([1]), budget_usd=0.5), done)
    assert (
        exhausted_budget(replace(plan([1]), budget_minutes=1), done)
        == "The budget of 1 minutes is used up (1.0)."
    )
    assert (SOLVED.phase, FAILED.phase) == (1, 2)


def test_a_plan_that_cannot_work_is_refused_before_anything_is_paid_for(context: BenchContext) -> None:
    check_plan(plan([1, 2, 3]), context.workspace)
    missing = Plan([replace(scripted("x"), command=["no-such-agent", "{prompt}"])], [1], 1)

    for refused, words in ((plan([9]), "Day 9 has no puzzle"), (missing, "is not installed")):
        with pytest.raises(InvalidArgument, match=words):
            check_plan(refused, context.workspace)
