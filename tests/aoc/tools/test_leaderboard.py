"""Ranking: `speed_leaderboard` and `speed_history`, with filters, pages and aliases."""

import json
from typing import Any

import pytest

from tests.aoc.data import Data, entry
from tests.support.checked import CheckedClient, connect


async def board(data: Data, **arguments: Any) -> Any:
    async with connect(data.bridge()) as client:
        return (await client.call("speed_leaderboard", arguments))["structuredContent"]


async def history(data: Data, **arguments: Any) -> Any:
    async with connect(data.bridge()) as client:
        return (await client.call("speed_history", arguments))["structuredContent"]


async def refusal(data: Data, tool: str, **arguments: Any) -> Any:
    async with connect(data.bridge()) as client:
        return await client.error("tools/call", {"name": tool, "arguments": arguments})


def put_aliases(data: Data, aliases: Any) -> None:
    text = aliases if isinstance(aliases, bytes) else json.dumps(aliases).encode()
    (data.folder / "aliases.json").write_bytes(text)


def standing(answer: Any) -> list[tuple[int, str]]:
    return [(row["rank"], row["llm"]) for row in answer["rows"]]


async def test_llms_are_ranked_by_the_median_of_their_times(data: Data) -> None:
    data.put_speeds(1, [entry("steady", 30), entry("lucky", 1), entry("lucky", 90), entry("lucky", 60)])
    data.put_speeds(2, [entry("steady", 40, 2), entry("steady", 20)])

    answer = await board(data)

    assert answer == {
        "rows": [
            {
                "rank": 1,
                "llm": "steady",
                "puzzles": 3,
                "n": 3,
                "best": 20,
                "median": 30,
                "mean": 30.0,
                "stdev": pytest.approx(10.0),
                "p95": None,
                "slower": 1.0,
            },
            {
                "rank": 2,
                "llm": "lucky",
                "puzzles": 1,
                "n": 3,
                "best": 1,
                "median": 60,
                "mean": pytest.approx(50.333333),
                "stdev": pytest.approx(45.2806, rel=1e-5),
                "p95": None,
                "slower": 2.0,
            },
        ],
        "total": 2,
        "even": False,
        "next_offset": None,
    }


async def test_from_twenty_runs_on_the_95th_percentile_is_given(data: Data) -> None:
    data.put_speeds(1, [entry("many", number) for number in range(1, 21)])

    assert (await board(data))["rows"][0]["p95"] == 19


async def test_equal_medians_share_a_rank(data: Data) -> None:
    data.put_speeds(
        1, [entry("b", 5), entry("a", 5), entry("c", 6), entry("d", 5), entry("d", 4), entry("d", 6)]
    )

    assert standing(await board(data)) == [(1, "d"), (1, "a"), (1, "b"), (4, "c")]


async def test_nothing_is_so_many_times_slower_than_no_time_at_all(data: Data) -> None:
    data.put_speeds(1, [entry("zero", 0), entry("nil", 0), entry("some", 5)])

    assert [row["slower"] for row in (await board(data))["rows"]] == [1.0, 1.0, None]


async def test_the_board_of_one_day_and_phase_counts_only_those(data: Data) -> None:
    data.put_speeds(1, [entry("a", 1), entry("b", 2), entry("a", 50, 2)])
    data.put_speeds(2, [entry("c", 1), entry("b", 99)])

    assert standing(await board(data, day=1, phase=1)) == [(1, "a"), (2, "b")]
    assert standing(await board(data, day=2)) == [(1, "c"), (2, "b")]
    assert standing(await board(data, phase=2)) == [(1, "a")]


async def test_one_llm_keeps_the_rank_that_it_has_among_all(data: Data) -> None:
    data.put_speeds(1, [entry("a", 1), entry("b", 3)])

    answer = await board(data, llm="b")

    assert standing(answer) == [(2, "b")]
    assert answer["rows"][0]["slower"] == 3.0


async def test_the_board_comes_in_pages(data: Data) -> None:
    data.put_speeds(1, [entry(f"llm{number}", number) for number in range(7)])

    first, last = await board(data, limit=5), await board(data, limit=5, offset=5)
    beyond = await board(data, offset=50)

    assert (len(first["rows"]), first["next_offset"], first["total"]) == (5, 5, 7)
    assert (standing(last), last["next_offset"]) == ([(6, "llm5"), (7, "llm6")], None)
    assert (beyond["rows"], beyond["total"]) == ([], 7)


async def test_the_text_of_the_board_says_what_to_do_next(data: Data) -> None:
    data.put_speeds(1, [entry("a", 100), entry("a", 101), entry("b", 150)])
    data.put_speeds(2, [*(entry("b", 150) for _ in range(20))])

    async with connect(data.bridge()) as client:
        text = await client.text("speed_leaderboard", {"limit": 1})
        rest = await client.text("speed_leaderboard", {"offset": 1})
        beyond = await client.text("speed_leaderboard", {"offset": 9, "day": 2})

    assert text.splitlines()[0] == (
        "1. a: median 100ms, 1.00× the best (n 2 on 1, best 100ms, mean 100ms, stdev 0.7ms)"
    )
    assert "filter by day and phase" in text
    assert text.endswith("2 in all; for more: offset 1")
    assert ", p95 150ms)" in rest
    assert beyond == "There are only 1 rows."


@pytest.mark.parametrize("tool", ["speed_leaderboard", "speed_history"])
async def test_without_any_runs_the_text_says_so(data: Data, tool: str) -> None:
    async with connect(data.bridge()) as client:
        assert "No runs are recorded" in await client.text(tool, {"day": 3})


async def test_aliases_make_one_llm_of_several_names(data: Data) -> None:
    put_aliases(data, {"gpt4": ["gpt-4", "gpt4agent"]})
    data.put_speeds(1, [entry("gpt4", 1), entry("gpt-4", 3), entry("gpt4agent", 5), entry("other", 2)])

    answer, by_alias = await board(data), await board(data, llm="gpt-4")
    runs = await history(data, llm="gpt4agent")

    assert standing(answer) == [(1, "other"), (2, "gpt4")]
    assert by_alias["rows"][0]["n"] == 3
    assert sorted(run["llm"] for run in runs["runs"]) == ["gpt-4", "gpt4", "gpt4agent"]


@pytest.mark.parametrize(
    ("aliases", "word"),
    [
        (b"{", "truncated"),
        (b"[]", "object"),
        (b'{"a": "b"}', "array"),
        (b'{"a": [""]}', "length"),
        ({"a": ["x"], "b": ["x"]}, "both"),
        ({"a": ["b"], "b": ["c"]}, "aliases of its own"),
    ],
)
async def test_a_broken_aliases_file_is_a_clear_error(data: Data, aliases: Any, word: str) -> None:
    put_aliases(data, aliases)

    error = await refusal(data, "speed_leaderboard")

    assert error["code"] == -1
    assert word in error["message"]
    assert str(data.folder / "aliases.json") in error["message"]
    assert '{"gpt4": ["gpt-4", "gpt4agent"]}' in error["message"]


async def test_a_board_is_new_when_records_or_aliases_have_changed(data: Data) -> None:
    data.put_speeds(1, [entry("a", 5)])

    async def rows(client: CheckedClient) -> list[tuple[str, int]]:
        answer = (await client.call("speed_leaderboard"))["structuredContent"]
        return [(row["llm"], row["n"]) for row in answer["rows"]]

    async with connect(data.bridge()) as client:
        assert await rows(client) == await rows(client) == [("a", 1)]
        await client.call("record_speed", {"day": 1, "phase": 1, "llm_name": "b", "speed_ms": 7})
        assert await rows(client) == [("a", 1), ("b", 1)]
        put_aliases(data, {"a": ["b"]})
        assert await rows(client) == [("a", 2)]
        data.speeds_file(1).unlink()
        assert await rows(client) == []


@pytest.mark.parametrize("tool", ["speed_leaderboard", "speed_history"])
async def test_a_corrupt_file_is_named_by_whoever_reads_it(data: Data, tool: str) -> None:
    data.put_speeds(3, b'{"day": 3, "entries": [{}]}')

    error = await refusal(data, tool)

    assert error["code"] == -1
    assert str(data.speeds_file(3)) in error["message"]
    assert "$.entries[0]" in error["message"]


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
        text = await client.text("speed_history", {"limit": 1})

    assert seen == list(range(9, -1, -1))
    assert "Day 1 Phase 1 z: 99ms" in text
    assert "older 12" in text
