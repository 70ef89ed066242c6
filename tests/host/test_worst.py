"""The gate of the worst calls: every tool is in its table, and a broken rule fails it."""

import pytest

from bench.host import shapes
from bench.host.worst import Row, Run, Trial, report
from bench.host.worst_arguments import WORST
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import make_bridge

NEEDED = {"MERCURY_API_KEY": "sk_0123456789abcdef"}


def test_every_tool_has_its_worst_arguments_in_the_table_and_they_are_accepted() -> None:
    """A new tool extends `bench/host/worst_arguments.py`, so that `make worst` calls it."""
    tools = {
        tool.name: tool
        for name in plugins.built_in_names()
        for tool in make_bridge(plugins.load(name), NEEDED).tools.values()
    }
    assert sorted(WORST) == sorted(tools)
    for name, calls in WORST.items():
        known = set(tools[name].input_schema.get("properties", {}))
        assert calls, name
        for arguments in calls:
            assert set(arguments) <= known, name


# --- the rules ----------------------------------------------------------------------------------------------


def make_row(*waits: float, answered: int = 5, before: float = 100.0, after: float = 100.0) -> Row:
    return Row("tool", "reader", [Trial(wait, answered, before, after, after) for wait in waits])


def make_run(
    row: Row, baseline: float = 10.0, memory: tuple[float, ...] = (90.0, 100.0, 101.0, 102.0)
) -> Run:
    return Run([row], baseline, list(memory))


def test_calls_that_keep_every_rule_pass_the_gate() -> None:
    assert make_run(make_row(20.0, 259.0, 1009.0)).list_faults() == []


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        (make_run(make_row(20.0, 261.0, 262.0)), "`tool` (reader), another client waited 261 ms"),
        (make_run(make_row(1011.0, 5.0, 5.0)), "`tool` (reader), pass 1: another client waited 1011 ms"),
        (make_run(make_row(5.0, answered=0)), "`tool` (reader), pass 1: no call was answered"),
        (
            make_run(make_row(5.0, 5.0, after=111.0)),
            "`tool` (reader), pass 2: memory went from 100 to 111 MB",
        ),
        (
            make_run(make_row(5.0), baseline=251.0),
            "before anything was called, the honest client waited 251 ms",
        ),
        (
            make_run(make_row(5.0), memory=(90.0, 100.0, 100.0, 111.0)),
            "in the last pass the lowest memory went from 100 to 111 MB",
        ),
    ],
)
def test_each_broken_rule_fails_the_gate_and_is_named(run: Run, fault: str) -> None:
    assert run.list_faults() == [fault]
    assert f"**Not reached:**\n\n- {fault}" in report(run)


# --- generated calls ----------------------------------------------------------------------------------------

TOOLS = {
    tool.name: tool.input_schema
    for name in plugins.built_in_names()
    for tool in make_bridge(plugins.load(name), NEEDED).tools.values()
}


def test_a_number_gives_the_same_call_each_time_and_another_number_another() -> None:
    calls = [shapes.make_call(number, TOOLS, {}) for number in (7, 7, 8)]

    assert calls[0] == calls[1] != calls[2]


def test_the_generated_calls_reach_most_tools_and_every_place_of_a_message() -> None:
    calls = [shapes.make_call(number, TOOLS, {}) for number in range(shapes.SEED, shapes.SEED + 100)]

    assert len({call.tool for call in calls}) > len(TOOLS) / 2
    assert {"arguments", "params", "id", "method", "unknown"} < {call.place for call in calls}
    assert sum(len(call.body) > 5_000_000 for call in calls) > 20


@pytest.mark.parametrize(
    ("trial", "faults"),
    [
        (shapes.Trial(259.0, 119.0, is_answered=True), []),
        (shapes.Trial(261.0, 0.0, is_answered=True), ["another client waited 261 ms"]),
        (shapes.Trial(5.0, 121.0, is_answered=True), ["memory rose by 121 MB"]),
        (shapes.Trial(5.0, 0.0, is_answered=False), ["the answer was a failure of the server"]),
    ],
)
def test_a_generated_call_fails_the_gate_by_waiting_memory_or_failure(
    trial: shapes.Trial, faults: list[str]
) -> None:
    assert trial.list_faults(10.0, 5_000_000) == faults
