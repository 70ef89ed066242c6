"""Leaderboard: `speed_leaderboard`, `speed_history` and the resource, with filters, pages and aliases."""

import json
from typing import Any

import pytest

from bridgehead.aoc.files.entries import NewEntry
from bridgehead.aoc.ranking import standings
from bridgehead.aoc.ranking.wording import METHOD
from bridgehead.mcp.revisions import HANDSHAKE
from tests.aoc.data import CONTRACT, ONLY_FILES, Data, entry, put_graded
from tests.support.checked import CheckedClient, connect


async def board(data: Data, **arguments: Any) -> Any:
    async with connect(data.bridge()) as client:
        return (await client.call("speed_leaderboard", arguments))["structuredContent"]


async def history(data: Data, **arguments: Any) -> Any:
    async with connect(data.bridge()) as client:
        return (await client.call("speed_history", arguments))["structuredContent"]


async def call_text(data: Data, tool: str, **arguments: Any) -> str:
    async with connect(data.bridge()) as client:
        return await client.all_text(tool, arguments)


async def refusal(data: Data, tool: str, **arguments: Any) -> Any:
    async with connect(data.bridge(), revision=CONTRACT) as client:
        return await client.error("tools/call", {"name": tool, "arguments": arguments})


def put_aliases(data: Data, aliases: Any) -> None:
    text = aliases if isinstance(aliases, bytes) else json.dumps(aliases).encode()
    (data.folder / "aliases.json").write_bytes(text)


def ranks(answer: Any) -> list[tuple[int | None, str]]:
    return [(row["rank"], row["llm"]) for row in answer["rows"]]


async def test_a_row_has_everything_that_a_ranking_is_judged_by(data: Data) -> None:
    data.put_speeds(1, [entry(llm, time) for llm, n in (("steady", 1), ("late", 2)) for time in times(n)])

    answer = await board(data)

    assert {**answer, "rows": []} == {
        "rows": [],
        "total": 2,
        "measure": "solving",
        "grades": ["claimed"],
        "method": answer["method"],
        "next_offset": None,
        "skipped": [],
        "notes": answer["notes"],
    }
    first, second = answer["rows"]
    assert first == {
        "rank": 1,
        "rank_high": 1,
        "llm": "steady",
        "unranked": None,
        "slower": 1.0,
        "low": 1.0,
        "high": 1.0,
        "per_solved": 30.0,
        "puzzles": 1,
        "n": 5,
        "verified": 0,
        "measured": 0,
        "claimed": 5,
        "best": 28,
        "median": 30,
        "mean": 30.0,
        "stdev": pytest.approx(2.5**0.5),
        "p95": None,
        "solved": 0,
        "failed": 0,
        "wrong": 0,
        "solve_rate": None,
        "tokens": None,
        "cost_usd": None,
        "models": [],
    }
    assert (second["llm"], second["rank"], second["rank_high"]) == ("late", 2, 2)
    assert second["slower"] == pytest.approx(2.0)
    assert 1.8 < second["low"] <= 2.0 <= second["high"] < 2.2


def times(factor: int) -> list[int]:
    return [factor * time for time in (28, 29, 30, 31, 32)]


async def test_from_twenty_runs_on_the_95th_percentile_is_given(data: Data) -> None:
    data.put_speeds(1, [entry("many", number) for number in range(1, 21)])

    assert (await board(data))["rows"][0]["p95"] == 19


async def test_models_that_cannot_be_told_apart_have_ranks_that_overlap(data: Data) -> None:
    data.put_speeds(
        1,
        [
            *(entry("a", time) for time in (90, 95, 100, 105, 110)),
            *(entry("b", time) for time in (91, 96, 101, 106, 111)),
            *(entry("c", time) for time in (900, 950, 1000, 1050, 1100)),
        ],
    )

    answer = await board(data)

    assert ranks(answer) == [(1, "a"), (1, "b"), (3, "c")]
    assert [row["rank_high"] for row in answer["rows"]] == [2, 2, 3]


async def test_no_time_at_all_counts_as_half_a_millisecond(data: Data) -> None:
    data.put_speeds(1, [entry(llm, time) for llm, time in (("zero", 0), ("some", 5)) for _ in range(5)])

    assert [row["slower"] for row in (await board(data))["rows"]] == [1.0, pytest.approx(10.0)]


async def test_the_board_of_one_day_and_phase_counts_only_those(data: Data) -> None:
    data.put_speeds(1, [entry("a", 1), entry("b", 2), entry("a", 50, 2)] * 5)
    data.put_speeds(2, [entry("c", 1), entry("b", 99)] * 5)

    assert ranks(await board(data, day=1, phase=1)) == [(1, "a"), (2, "b")]
    assert ranks(await board(data, day=2)) == [(1, "c"), (2, "b")]
    assert ranks(await board(data, phase=2)) == [(None, "a")]


async def test_one_llm_keeps_the_rank_that_it_has_among_all(data: Data) -> None:
    data.put_speeds(1, [entry("a", 1), entry("b", 3)] * 5)

    answer = await board(data, llm="b")

    assert ranks(answer) == [(2, "b")]
    assert answer["rows"][0]["slower"] == pytest.approx(3.0)


async def test_the_board_comes_in_pages(data: Data) -> None:
    data.put_speeds(1, [entry(f"llm{number}", number) for number in range(7)])

    first, last = await board(data, limit=5), await board(data, limit=5, offset=5)
    beyond = await board(data, offset=50)

    assert (len(first["rows"]), first["next_offset"], first["total"]) == (5, 5, 7)
    assert (ranks(last), last["next_offset"]) == ([(None, "llm5"), (None, "llm6")], None)
    assert (beyond["rows"], beyond["total"]) == ([], 7)


async def test_the_text_of_the_board_has_the_same_figures_and_says_how_they_came_about(data: Data) -> None:
    data.put_speeds(1, [entry(llm, time) for llm in ("a", "b") for time in (100, 101, 101, 101, 102)])
    data.put_speeds(2, [*(entry("b", 168_000) for _ in range(20))])

    text = await call_text(data, "speed_leaderboard", day=1, limit=1)
    slow = await call_text(data, "speed_leaderboard", day=2)
    beyond = await call_text(data, "speed_leaderboard", offset=9, day=2)

    assert text.startswith(
        "Solving time, claimed:\n1–2. a: 1.00× the leader, 101 ms per solved answer, median 101 ms; 5 runs "
        "on 1 puzzle, best 100 ms, stdev 0.707 ms\n"
        f"{METHOD}\nNote: With fewer than 3 shared days, attempts are compared, and this is about these "
        "puzzles only.\n"
    )
    assert text.endswith("Next: There are 2 rows in all; for more: offset 1.")
    assert (
        "– b (no shared puzzle): 2.8 min per solved answer, median 2.8 min; 20 runs on 1 puzzle, best 2.8 min"
        in slow
    )
    assert "Nobody is ranked yet." in slow
    assert "p95 2.8 min" in slow
    assert beyond == "There is no row at this offset: the board has 1 row."


@pytest.mark.parametrize("tool", ["speed_leaderboard", "speed_history"])
async def test_without_runs_the_text_says_what_there_is_and_never_asks_for_a_record(
    data: Data, tool: str
) -> None:
    assert await call_text(data, tool) == "No runs are recorded yet."
    data.put_speeds(1, [entry("gpt-5", 5)])
    data.put_speeds(2, [entry("o3", 5)])

    assert (
        await call_text(data, tool, day=3) == "No runs are recorded for day 3.\nNote: Days with runs: 1, 2."
    )
    assert await call_text(data, tool, llm="claude") == (
        "No runs of 'claude' are recorded.\nNote: Known models: gpt-5, o3."
    )


async def test_measures_never_meet_on_one_board(data: Data) -> None:
    data.put_speeds(
        1,
        [
            entry("a", 90_000),
            *(entry(llm, time, measure="execution") for llm, time in (("a", 4), ("b", 9)) for _ in range(5)),
        ],
    )

    solving, execution = await board(data), await board(data, measure="execution")
    text = await call_text(data, "speed_leaderboard")

    assert (solving["measure"], ranks(solving)) == ("solving", [(None, "a")])
    assert (execution["measure"], ranks(execution)) == ("execution", [(1, "a"), (2, "b")])
    assert "10 runs of execution time not shown: measure=execution." in text


async def test_a_model_without_solving_times_is_found_on_the_other_board(data: Data) -> None:
    data.put_speeds(1, [entry("solver", 5), entry("runner", 7, measure="execution")])
    async with connect(data.bridge()) as client:
        found = await client.call("speed_leaderboard", {"llm": "RUNNER"})
        missing = await client.all_text("speed_leaderboard", {"llm": "walker"})
        not_solving = await client.all_text("speed_leaderboard", {"llm": "runner", "measure": "solving"})

    assert found["structuredContent"]["measure"] == "execution"
    assert ranks(found["structuredContent"]) == [(None, "runner")]
    assert missing == "No runs of 'walker' are recorded.\nNote: Known models: runner, solver."
    assert not_solving.startswith("No runs are recorded for this.")


async def test_a_model_without_a_puzzle_in_common_is_not_compared(data: Data) -> None:
    data.put_speeds(1, [entry("often", time) for time in (28, 29, 30, 31, 32)])
    data.put_speeds(2, [entry("once", 2)])

    text = await call_text(data, "speed_leaderboard")

    assert "– once (fewer than 5 attempts at a puzzle): 2 ms per solved answer, median 2 ms; 1 run on" in text
    assert "the leader" not in text


async def test_a_board_of_nothing_but_execution_time_is_shown_without_asking(data: Data) -> None:
    data.put_speeds(1, [entry("a", 4, measure="execution")])

    assert (await board(data))["measure"] == "execution"


async def test_what_is_claimed_and_what_is_measured_is_marked(data: Data) -> None:
    data.put_speeds(1, [entry("a", 4), entry("b", 7, source="measured"), entry("b", 8, grade="verified")])
    put_graded(data, NewEntry("a", 1, 5, "t", grade="measured"))
    data.take_in()

    answer = await board(data)
    text = await call_text(data, "speed_leaderboard")

    assert [(row["llm"], row["measured"], row["claimed"]) for row in answer["rows"]] == [
        ("a", 1, 0),
        ("a", 0, 1),
        ("b", 0, 2),
    ]
    reasons = [row["unranked"] for row in answer["rows"]]
    assert reasons == ["fewer than 5 attempts at a puzzle", "claimed", "claimed"]
    assert "Claimed, not ranked:\n– a: 4 ms per solved answer, median 4 ms" in text
    assert (await board(data, grade="measured"))["total"] == 1


@ONLY_FILES
async def test_a_byte_order_mark_is_fine_everywhere(data: Data) -> None:
    mark = b"\xef\xbb\xbf"
    (data.folder / "aliases.json").write_bytes(mark + b'{"gpt4": ["gpt-4"]}')
    data.put_speeds(1, mark + json.dumps({"day": 1, "entries": [entry("gpt-4", 1)]}).encode())
    async with connect(data.bridge()) as client:
        await client.call("record_speed", {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 7})
        answer = (await client.call("speed_leaderboard"))["structuredContent"]

    assert [(row["llm"], row["n"]) for row in answer["rows"]] == [("gpt4", 2)]
    assert answer["skipped"] == []
    assert data.speeds_file(1).read_bytes().startswith(mark)


@ONLY_FILES
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


@ONLY_FILES
@pytest.mark.parametrize("tool", ["speed_leaderboard", "speed_history"])
async def test_a_corrupt_file_blocks_only_questions_about_its_day(data: Data, tool: str) -> None:
    data.put_speeds(1, [entry("a", 1)])
    data.put_speeds(3, b'{"day": 3, "entries": [{}]}')

    async with connect(data.bridge()) as client:
        everything = await client.call(tool)
        other_day = await client.call(tool, {"day": 1})
    error = await refusal(data, tool, day=3)

    (skipped,) = everything["structuredContent"]["skipped"]
    assert skipped["file"] == str(data.speeds_file(3))
    assert "line 1: `llm` is missing" in skipped["problem"]
    assert f"Skipped: {data.speeds_file(3)} is corrupt" in everything["content"][1]["text"]
    assert everything["structuredContent"]["total"] == 1
    assert other_day["structuredContent"]["skipped"] == []
    assert error["code"] == -1
    assert str(data.speeds_file(3)) in error["message"]


@ONLY_FILES
async def test_a_corrupt_file_does_not_stop_completion(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1)])
    data.put_speeds(3, b"{")
    params = {
        "ref": {"type": "ref/prompt", "name": "compare_models"},
        "argument": {"name": "llm_name", "value": "g"},
    }

    async with connect(data.bridge()) as client:
        assert (await client.request("completion/complete", params))["completion"]["values"] == ["gpt4"]


async def test_the_leaderboard_is_a_resource_that_can_be_subscribed_to(data: Data) -> None:
    data.put_speeds(1, [entry("a", 100)])
    async with connect(data.bridge(), revision=HANDSHAKE["2025-11-25"]) as client:
        listed = (await client.request("resources/list"))["resources"]
        read = await client.request("resources/read", {"uri": "aoc://leaderboard"})
        await client.request("resources/subscribe", {"uri": "aoc://leaderboard"})
        await client.call("record_speed", {"day": 1, "phase": 1, "llm_name": "b", "speed_ms": 7})
        heard = await client.inbox.of("notifications/resources/updated")

    assert [item["uri"] for item in listed] == ["aoc://leaderboard"]
    assert "– a (fewer than 5 attempts at a puzzle): 100 ms per solved answer" in read["contents"][0]["text"]
    assert heard[0]["params"]["uri"] == "aoc://leaderboard"


async def test_a_client_of_the_contract_sees_only_days_in_the_list(data: Data) -> None:
    data.puzzle(1, "one")
    async with connect(data.bridge(), revision=CONTRACT) as client:
        listed = (await client.request("resources/list"))["resources"]

    assert [item["uri"] for item in listed] == ["aoc://day01"]


async def test_names_that_differ_in_case_are_one_row_and_one_history(data: Data) -> None:
    (data.folder / "aliases.json").write_text('{"claude": ["Opus"]}')
    data.put_speeds(1, [entry("GPT4", 1), entry("gpt4", 2), entry("gpt4", 3), entry("OPUS", 4)])

    async with connect(data.bridge()) as client:
        rows = (await client.call("speed_leaderboard"))["structuredContent"]["rows"]
        history = (await client.call("speed_history", {"llm_name": "Gpt4"}))["structuredContent"]

    assert sorted((row["llm"], row["n"]) for row in rows) == [("claude", 1), ("gpt4", 3)]
    assert history["total"] == 3


async def test_of_very_many_models_those_with_the_fewest_runs_are_left_out_and_can_be_asked_for(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standings, "MAX_MODELS", 3)
    invented = [entry(f"invented-{number}", 5) for number in range(20)]
    data.put_speeds(1, [*invented, entry("real", 9), entry("real", 10)])

    async with connect(data.bridge()) as client:
        board = (await client.call("speed_leaderboard"))["structuredContent"]
        asked = (await client.call("speed_leaderboard", {"llm_name": "invented-3"}))["structuredContent"]

    assert (len(board["rows"]), board["rows"][0]["llm"] in {"real", "invented-9", "invented-8"}) == (3, True)
    assert "real" in {row["llm"] for row in board["rows"]}
    assert "18 models with fewer runs left out; llm_name shows one of them." in board["notes"]
    assert [row["llm"] for row in asked["rows"]] == ["invented-3"]
