"""History: single runs, the newest first, page by page."""

from typing import Any

from tests.aoc.data import Data, entry
from tests.support.checked import connect


async def history(data: Data, **arguments: Any) -> Any:
    async with connect(data.bridge()) as client:
        return (await client.call("speed_history", arguments))["structuredContent"]


async def test_the_history_is_newest_first_over_all_days(data: Data) -> None:
    data.put_speeds(
        1,
        [
            entry("a", 4, 1, "2025-12-06T09:12:44.1234567Z"),
            {"llm": "a", "phase": 2, "speed_ms": 3, "timestamp": "2025-12-06T09:12:44.123Z"},
            entry("c", 9, 1, "sometime"),
        ],
    )
    data.put_speeds(
        2, [entry("b", 5, 1, "2025-12-06T12:00:00+02:00"), entry("b", 2, 1, "2025-12-05T00:00:00Z")]
    )

    answer = await history(data)

    assert [run["speed_ms"] for run in answer["runs"]] == [5, 4, 3, 2, 9]
    assert answer["runs"][1] == {
        "day": 1,
        "phase": 1,
        "llm": "a",
        "speed_ms": 4,
        "timestamp": "2025-12-06T09:12:44.1234567Z",
        "measure": "solving",
        "grade": "claimed",
        "id": answer["runs"][1]["id"],
        "withdrawn": False,
    }
    assert (answer["total"], answer["older"]) == (5, None)


async def test_the_history_is_filtered(data: Data) -> None:
    data.put_speeds(1, [entry("a", 1), entry("a", 2, 2), entry("b", 3)])
    data.put_speeds(2, [entry("a", 4)])

    def times(answer: Any) -> list[int]:
        return sorted(run["speed_ms"] for run in answer["runs"])

    assert times(await history(data, day=1)) == [1, 2, 3]
    assert times(await history(data, phase=2)) == [2]
    assert times(await history(data, llm="a", phase=1)) == [1, 4]


async def test_pages_of_the_history_stay_whole_while_runs_come_in(data: Data) -> None:
    data.put_speeds(
        1, [entry("a", number, 1, f"2025-12-01T00:00:{number:02}Z") for number in range(9, -1, -1)]
    )

    async with connect(data.bridge()) as client:
        params: dict[str, Any] = {"limit": 4}
        seen: list[int] = []
        while True:
            answer = (await client.call("speed_history", params))["structuredContent"]
            seen += [run["speed_ms"] for run in answer["runs"]]
            await client.call("record_speed", {"day": 1, "phase": 1, "llm_name": "z", "speed_ms": 99})
            if answer["older"] is None:
                break
            params["older"] = answer["older"]
        text = await client.all_text("speed_history", {"limit": 1})

    assert seen == list(range(9, -1, -1))
    assert "Day 1 Phase 1 z: 99ms" in text
    assert "older 12" in text
