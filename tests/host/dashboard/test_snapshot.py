"""Snapshot: one process as plain data, and several added up."""

import msgspec

from bridgehead.host.dashboard.history import DAY, QUARTER, Counts, Failure
from bridgehead.host.dashboard.snapshot import (
    BridgeState,
    ProcessState,
    SessionState,
    Snapshot,
    make_handle,
    merge,
)


def snapshot(worker: int = 0, *, is_far_side_up: bool = True, calls: int = 1) -> Snapshot:
    counts = Counts(calls, 0, [calls] + [0] * 15)
    return Snapshot(
        taken=1_000_000.0,
        version="1",
        processes=[ProcessState(worker, 999_000.0, 1.0, 2.0**20)],
        bridges=[
            BridgeState(
                "aoc",
                "Advent",
                serves=True,
                is_far_side_up=is_far_side_up,
                detail=f"{worker}",
                in_flight=1,
                tools={"x": counts},
            )
        ],
        slots={QUARTER.name: {199_999: {"aoc": counts}}, DAY.name: {3_332: {"aoc": counts}}},
        failures=[Failure(float(worker), "aoc", "x", "ann", f"Problem {worker}.")],
        notices=[],
        sessions=[SessionState(f"h{worker}", worker, "ann", "client", "2025-11-25", "", 3.0, is_busy=False)],
        open={"sessions": 1},
        clients={"ann": {"made": 5, "sessions": 1}},
        limits={"sessions": 10},
        tasks={"working": 1},
        rejections={"path": 2},
        token_uses={"ab": 100.0 + worker, f"c{worker}": 1.0},
    )


def test_the_snapshots_of_all_workers_are_added_up() -> None:
    whole = merge([snapshot(1, calls=3), snapshot(0, is_far_side_up=False, calls=2)])

    assert [one.worker for one in whole.processes] == [0, 1]
    (bridge,) = whole.bridges
    assert (bridge.is_far_side_up, bridge.detail) == (False, "0")
    assert (bridge.in_flight, bridge.tools["x"].calls) == (2, 5)
    assert whole.calls.calls == whole.slots["quarter"][199_999]["aoc"].calls == 5
    assert whole.slots["day"][3_332]["aoc"].calls == 5
    assert [one.problem for one in whole.failures] == ["Problem 1.", "Problem 0."]
    assert (whole.open, whole.clients) == ({"sessions": 2}, {"ann": {"made": 10, "sessions": 2}})
    assert whole.token_uses == {"ab": 101.0, "c0": 1.0, "c1": 1.0}
    assert (whole.tasks, whole.rejections, len(whole.sessions)) == ({"working": 2}, {"path": 4}, 2)


def test_one_process_alone_is_as_it_is() -> None:
    one = snapshot()

    assert merge([one]) is one


def test_another_worker_reads_what_one_has_written() -> None:
    one = snapshot()

    assert msgspec.json.decode(one.encode(), type=Snapshot) == one


def test_the_handle_of_a_session_does_not_give_its_id_away() -> None:
    assert make_handle("0~secret") == make_handle("0~secret")
    assert "secret" not in make_handle("0~secret")
    assert make_handle("0~secret").isalnum()
