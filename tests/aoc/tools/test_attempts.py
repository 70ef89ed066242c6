"""Attempts: the server times a model from the puzzle to the right answer, and tells right from wrong."""

import time
from typing import Any

import pytest

from bridgehead.aoc.bridge import make_bridge
from bridgehead.aoc.files.attempts import OPEN_SECONDS
from bridgehead.aoc.settings import AocSettings
from tests.aoc.data import Data
from tests.support import task_client
from tests.support.checked import CheckedClient, connect
from tests.support.clock import Clock

START = {"day": 1, "phase": 1, "llm_name": "gpt4"}


@pytest.fixture
def answered(data: Data) -> Data:
    """A folder with a puzzle and its answer."""
    data.puzzle(1, "Count the gulls.")
    (data.folder / "answers").mkdir()
    (data.folder / "answers" / "Day01_phase1.txt").write_bytes(b"\xef\xbb\xbf4711\r\n")
    return data


async def start(client: CheckedClient, **more: Any) -> str:
    started = (await client.call("start_attempt", {**START, **more}))["structuredContent"]
    attempt: str = started["attempt"]
    return attempt


async def finish(client: CheckedClient, attempt: str, **more: Any) -> Any:
    return (await client.call("finish_attempt", {"attempt": attempt, **more}))["structuredContent"]


async def test_a_right_answer_stops_the_clock_and_records_a_measured_solving_time(answered: Data) -> None:
    async with connect(answered.bridge()) as client:
        began = time.monotonic()
        attempt = await start(client)
        done = await finish(client, attempt, answer=" 4711\n", tokens=1200, cost_usd=0.03)
        spent = (time.monotonic() - began) * 1000
        (row,) = (await client.call("speed_leaderboard"))["structuredContent"]["rows"]

    assert (done["outcome"], done["verdict"], done["recorded"]) == ("solved", "right", True)
    assert 1 <= done["speed_ms"] <= spent + 1
    (entry,) = answered.entries(1)
    assert (entry["speedMs"], entry["measure"], entry["grade"]) == (done["speed_ms"], "solving", "measured")
    assert (row["claimed"], row["solve_rate"], row["tokens"], row["cost_usd"]) == (0, 1.0, 1200.0, 0.03)


@pytest.mark.parametrize(
    ("answer", "verdict"), [("4712", "too_high"), ("-3", "too_low"), ("gulls", "wrong"), ("9" * 500, "wrong")]
)
async def test_after_a_wrong_answer_the_clock_runs_on(answered: Data, answer: str, verdict: str) -> None:
    async with connect(answered.bridge()) as client:
        attempt = await start(client)
        text = await client.text("finish_attempt", {"attempt": attempt, "answer": answer})
        wrong = await finish(client, attempt, answer=answer)
        right = await finish(client, attempt, answer="4711")

    assert text.startswith("Wrong")
    assert "4711" not in text
    assert (wrong["outcome"], wrong["verdict"], wrong["recorded"]) == ("wrong", verdict, False)
    assert right["outcome"] == "solved"
    assert right["speed_ms"] >= wrong["speed_ms"]
    assert len(answered.entries(1)) == 1


async def test_giving_up_counts_as_not_solved_and_records_no_time(answered: Data) -> None:
    async with connect(answered.bridge()) as client:
        attempt = await start(client)
        done = await finish(client, attempt, give_up=True)
        again = await client.call("finish_attempt", {"attempt": attempt, "answer": "4711"})
        (row,) = (await client.call("speed_leaderboard"))["structuredContent"]["rows"]
        text = await client.text("speed_leaderboard")

    assert (done["outcome"], done["recorded"]) == ("failed", False)
    assert "has ended (failed)" in again["content"][0]["text"]
    assert (row["n"], row["attempts"], row["solve_rate"]) == (0, 1, 0.0)
    assert "gpt4 (provisional): no solved runs; solved 0 of 1" in text
    assert not answered.speeds.exists()


async def test_without_a_known_answer_the_time_is_recorded_unchecked(data: Data) -> None:
    data.puzzle(1, "Count the gulls.")
    async with connect(data.bridge()) as client:
        done = await finish(client, await start(client), answer="anything")
        (row,) = (await client.call("speed_leaderboard"))["structuredContent"]["rows"]

    assert (done["outcome"], done["verdict"]) == ("unchecked", "unknown")
    assert (row["n"], row["attempts"], row["solved"], row["solve_rate"]) == (1, 1, 0, None)


async def test_an_attempt_survives_the_server_that_began_it(answered: Data) -> None:
    async with connect(answered.bridge()) as client:
        attempt = await start(client)
    async with connect(answered.bridge()) as client:
        done = await finish(client, attempt, answer="4711")

    assert done["outcome"] == "solved"
    assert done["speed_ms"] >= 1


async def test_an_attempt_that_nobody_finished_within_a_day_counts_as_not_solved(answered: Data) -> None:
    async with connect(answered.bridge()) as client:
        await start(client)
        assert (await client.call("speed_leaderboard"))["structuredContent"]["rows"] == []
    later = Clock(time.time() + OPEN_SECONDS + 60)
    async with connect(make_bridge(AocSettings(answered.environment()), clock=later)) as client:
        (row,) = (await client.call("speed_leaderboard"))["structuredContent"]["rows"]

    assert (row["attempts"], row["solve_rate"]) == (1, 0.0)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("start_attempt", {**START, "day": 2}, "Day 2 has no puzzle here. Days with a puzzle: 1."),
        ("start_attempt", {"day": 1, "phase": 1}, "llm_name is missing."),
        ("finish_attempt", {"attempt": "none", "answer": "1"}, "There is no attempt 'none'."),
        ("finish_attempt", {"attempt": "none"}, "Give either an answer or give_up."),
        (
            "finish_attempt",
            {"attempt": "none", "answer": "1", "give_up": True},
            "Give either an answer or give_up.",
        ),
    ],
)
async def test_what_cannot_be_is_refused_in_words(
    answered: Data, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async with connect(answered.bridge()) as client:
        result = await client.call(tool, arguments)

    assert result["isError"]
    assert words in result["content"][0]["text"]


async def test_no_tool_resource_or_prompt_gives_an_answer_away(answered: Data) -> None:
    async with connect(answered.bridge()) as client:
        attempt = await start(client)
        for answer in ("1", "9999", "4710", "4712"):
            await client.call("finish_attempt", {"attempt": attempt, "answer": answer})
        for uri in (
            "aoc://day01",
            "aoc://leaderboard",
            "aoc://answers/Day01_phase1.txt",
            "aoc://day01/answer",
        ):
            await client.answer_to("resources/read", {"uri": uri})
        await client.request("prompts/get", {"name": "solve_day", "arguments": {"day": "1"}})
        said = str(client.sent)

    assert "4711" not in said


async def test_an_attempt_that_has_to_wait_can_become_a_task(answered: Data) -> None:
    bridge = answered.bridge()
    for tool in ("start_attempt", "finish_attempt"):
        bridge.tools[tool].task_grace_seconds = 0
    async with task_client.connect(bridge) as client:
        started = await client.end(await client.make("start_attempt", START))
        attempt = started["result"]["structuredContent"]["attempt"]
        done = await client.end(await client.make("finish_attempt", {"attempt": attempt, "answer": "4711"}))

    assert done["result"]["structuredContent"]["outcome"] == "solved"
