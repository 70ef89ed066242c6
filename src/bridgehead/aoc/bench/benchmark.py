"""Benchmark: all agents on all days, repeatedly, until done or out of budget. Resumes where it stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from bridgehead.runtime.errors import InvalidArgument

from ..files.attempts import AttemptStep
from ..files.entries import SOLVING, Details, format_timestamp
from ..files.instructions import has_answer
from ..files.recorder import NewRun
from ..files.seals import Seals
from ..workspace import Workspace
from .agent_run import Assignment, BenchContext, find_version, phases_of, remove_leftovers, run_agent
from .agents import Agent
from .journal import PhaseResult, RunJournal, RunResult


class Plan(Struct, frozen=True):
    """Which agents, days and repeats to run, and the budget."""

    agents: list[Agent]
    days: list[int]
    repeats: int
    budget_usd: float | None = None
    budget_minutes: float | None = None
    year: int = 0

    @property
    def assignments(self) -> list[Assignment]:
        """Every run, ordered so that an interrupted benchmark has run all agents equally often."""
        return [
            Assignment(agent, day, repeat, self.year)
            for repeat in range(1, self.repeats + 1)
            for day in self.days
            for agent in self.agents
        ]


class ProgressView(Protocol):
    """Shows the progress: as a table on a terminal, or as lines in a pipe."""

    def show(self, results: list[RunResult], current: Assignment | None) -> None:
        """Show the finished runs, and the one that starts, if any."""
        ...

    def warn(self, text: str) -> None:
        """Show a warning beside the runs."""
        ...


def check_plan(plan: Plan, workspace: Workspace) -> None:
    """Refuse a plan that cannot work, before it costs anything. Raises `InvalidArgument`."""
    for agent in plan.agents:
        if shutil.which(agent.command[0]) is None:
            raise InvalidArgument(
                f"{agent.command[0]!r}, the command of {agent.name}, is not installed.",
                next_step="Install it, or take the agent out of the file.",
            )
    available = workspace.days()
    for day in plan.days:
        if day not in available:
            days = ", ".join(map(str, sorted(available))) or "none"
            raise InvalidArgument(f"Day {day} has no puzzle here.", next_step=f"Days with a puzzle: {days}.")
        for phase in phases_of(workspace, day):
            if not has_answer(workspace.folders.answers, day, phase):
                raise InvalidArgument(
                    f"The answer to day {day} phase {phase} is not known here, so nothing could be checked.",
                    next_step=f"Put it into {workspace.folders.answers}, or run `bridgehead aoc fetch`.",
                )


def run_benchmark(plan: Plan, context: BenchContext, view: ProgressView) -> tuple[list[RunResult], str]:
    """Do all runs of a plan that are not in the journal; return all results, and why it ended early."""
    remove_leftovers()
    journal = RunJournal(context.folder, context.workspace.seals or Seals())
    before = journal.results()
    known = {name: one for name, one in before.items() if not one.is_broken or one.is_given_up}
    done = [known[assignment.id] for assignment in plan.assignments if assignment.id in known]
    # Repeated in case a crash came between writing the journal and writing the records.
    for result in done:
        record(context.workspace, result)
    versions: dict[str, str | None] = {}
    unpriced: set[str] = set()
    for assignment in plan.assignments:
        if assignment.id in known:
            continue
        why = exhausted_budget(plan, done)
        if why:
            return done, why
        agent = assignment.agent
        if agent.name not in versions:
            versions[agent.name] = find_version(agent, context)
        view.show(done, assignment)
        result = run_agent(assignment, context, versions[agent.name])
        journal.append(result)
        if result.is_broken:
            so_far = before[result.id].times_broken if result.id in before else 0
            result = replace(result, times_broken=so_far + 1)
        record(context.workspace, result)
        done.append(result)
        view.show(done, None)
        if plan.budget_usd is not None and result.cost_usd is None and agent.name not in unpriced:
            unpriced.add(agent.name)
            view.warn(
                f"{agent.name} reported no cost, so --budget-usd does not limit it; --budget-minutes does."
            )
    return done, ""


def uncounted_agents(plan: Plan, results: list[RunResult]) -> list[str]:
    """List the agents of which no run counted, because all were broken."""
    counted = {result.agent for result in results if not result.is_broken}
    broken = {result.agent for result in results if result.is_broken}
    return [agent.name for agent in plan.agents if agent.name in broken - counted]


def exhausted_budget(plan: Plan, done: list[RunResult]) -> str:
    """Name the budget that is used up; empty if none is."""
    dollars = sum(result.cost_usd or 0.0 for result in done)
    if plan.budget_usd is not None and dollars >= plan.budget_usd:
        return f"The budget of ${plan.budget_usd:g} is used up (${dollars:.2f})."
    minutes = sum(result.seconds for result in done) / 60
    if plan.budget_minutes is not None and minutes >= plan.budget_minutes:
        return f"The budget of {plan.budget_minutes:g} minutes is used up ({minutes:.1f})."
    return ""


def record(workspace: Workspace, result: RunResult) -> None:
    """Store the attempts and times of a run in the workspace. Idempotent."""
    begun = result.tried
    for phase in begun:
        attempt = f"bench-{result.id}-{phase.phase}"
        _, stored = workspace.attempts.find(attempt)
        # An agent reports the usage of the whole run; split it equally among the phases.
        tokens = None if result.tokens is None else result.tokens // len(begun)
        cost = None if result.cost_usd is None else result.cost_usd / len(begun)
        made_by = Details(
            agent=result.agent,
            version=result.version,
            model=result.model,
            language=result.language,
            prompt_hash=result.prompt_hash,
            transcript=result.transcript,
            host=result.host,
        )
        if not stored:
            steps = _steps(workspace.clock.now, attempt, result, phase)
            steps[-1].tokens, steps[-1].cost_usd, steps[-1].details = tokens, cost, made_by
            workspace.attempts.append(result.day, steps)
        if phase.outcome == "solved":
            tried = phase.wrong + 1
            details = replace(
                made_by, attempt=attempt, tries=tried, wrong=phase.wrong, tokens=tokens, cost_usd=cost
            )
            run = NewRun(
                result.day,
                phase.phase,
                result.agent,
                phase.milliseconds or 1,
                SOLVING,
                phase.grade,
                details,
            )
            workspace.recorder.record_now([run])


def _steps(
    now: Callable[[], float], attempt: str, result: RunResult, phase: PhaseResult
) -> list[AttemptStep]:
    """Write a phase as the steps of an attempt."""
    moment = now()

    def step(outcome: str) -> AttemptStep:
        return AttemptStep(
            attempt,
            outcome,  # type: ignore[arg-type]
            result.agent,
            phase.phase,
            format_timestamp(moment),
            moment,
            grade=phase.grade,
        )

    end = step("solved" if phase.outcome == "solved" else "failed")
    end.time = phase.milliseconds
    return [step("started"), *(step("wrong") for _ in range(phase.wrong)), end]
