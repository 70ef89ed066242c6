"""Attempts: the server times a model from the puzzle to the right answer, and tells right from wrong."""

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from bridgehead.aoc import bridge as aoc_bridge
from bridgehead.aoc.bridge import make_bridge
from bridgehead.aoc.files.attempts import OPEN_SECONDS, Stopwatch
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import PastAttempts, Workspace
from bridgehead.runtime.callers import is_operator
from bridgehead.runtime.errors import StorageError
from tests.aoc.data import Data
from tests.support import task_client
from tests.support.checked import CheckedClient, connect
from tests.support.clock import Clock
from tests.support.waiting import PATIENCE

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
    assert again["structuredContent"]["notes"] == ["The attempt had ended before; this is its result."]
    assert {**again["structuredContent"], "notes": None, "next": None} == {
        **done,
        "notes": None,
        "next": None,
    }
    assert (row["n"], row["failed"], row["solve_rate"]) == (0, 1, 0.0)
    assert "– gpt4 (nothing solved): solved 0, failed 1, 0 wrong answers" in text
    assert not answered.speeds.exists()


async def test_without_a_known_answer_the_time_is_recorded_unchecked(data: Data) -> None:
    data.puzzle(1, "Count the gulls.")
    async with connect(data.bridge()) as client:
        done = await finish(client, await start(client), answer="anything")
        (row,) = (await client.call("speed_leaderboard"))["structuredContent"]["rows"]

    assert (done["outcome"], done["verdict"]) == ("unchecked", "unknown")
    assert (row["n"], row["solved"], row["failed"], row["solve_rate"]) == (1, 0, 0, None)


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

    assert (row["failed"], row["solve_rate"]) == (1, 0.0)


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


# --- what is handed out ------------------------------------------------------------------------------------


@pytest.fixture
def whole(answered: Data) -> Data:
    """A folder with both phases of a day, its input and both answers."""
    answered.puzzle(1, "Count the gulls.", "Count their wings.")
    (answered.folder / "inputs").mkdir()
    (answered.folder / "inputs" / "day01.txt").write_text("gull\n" * 3)
    (answered.folder / "answers" / "Day01_phase2.txt").write_text("2")
    return answered


async def test_an_attempt_hands_out_the_text_of_its_phase_and_the_input(whole: Data) -> None:
    async with connect(whole.bridge()) as client:
        result = await client.call("start_attempt", START)
        started = result["structuredContent"]
        text = result["content"][0]["text"]

    assert started["instruction"] == "# Day 1\n\nCount the gulls."
    assert (started["input"], started["input_characters"], started["next_offset"]) == ("gull\n" * 3, 15, None)
    assert (started["grade"], started["tries"]) == ("measured", 5)
    assert "notes" not in started
    assert started["instruction"] in text
    assert started["input"] in text
    assert "wings" not in str(result)


async def test_a_long_input_is_read_page_by_page(whole: Data) -> None:
    content = "".join(f"{number}\n" for number in range(12_000))
    (whole.folder / "inputs" / "day01.txt").write_text(content)
    async with connect(whole.bridge()) as client:
        page = (await client.call("start_attempt", START))["structuredContent"]
        attempt, pages = page["attempt"], [page["input"]]
        assert f"read_input(attempt={attempt!r}, offset={page['next_offset']})" in page["next"][0]
        while page["next_offset"] is not None:
            assert pages[-1].endswith("\n")
            result = await client.call("read_input", {"attempt": attempt, "offset": page["next_offset"]})
            page = result["structuredContent"]
            pages.append(page["input"])
            assert result["content"][0]["text"] == page["input"]
        beyond = await client.call("read_input", {"attempt": attempt, "offset": 10**6})

    assert "".join(pages) == content
    assert len(pages) == 6
    assert "has 60,890 characters" in beyond["content"][0]["text"]


async def test_without_an_input_the_attempt_says_where_to_put_it(answered: Data) -> None:
    async with connect(answered.bridge()) as client:
        started = (await client.call("start_attempt", START))["structuredContent"]
        read = await client.call("read_input", {"attempt": started["attempt"]})

    assert started["input"] is None
    assert "There is no input for day 1" in started["notes"][0]
    assert read["isError"]


async def test_phase_2_opens_to_a_model_that_has_solved_phase_1(whole: Data) -> None:
    async with connect(whole.bridge()) as client:
        early = await client.call("start_attempt", {**START, "phase": 2})
        first = await start(client)
        await finish(client, first, answer="1")
        still = await client.call("start_attempt", {**START, "phase": 2})
        await finish(client, first, answer="4711")
        other = await client.call("start_attempt", {**START, "phase": 2, "llm_name": "another"})
        opened = await client.call("start_attempt", {**START, "phase": 2, "llm_name": "GPT4"})
        done = await finish(client, opened["structuredContent"]["attempt"], answer="2")

    for refused in (early, still, other):
        assert "Phase 2 of day 1 is not open" in refused["content"][0]["text"]
        assert "wings" not in str(refused)
    assert opened["structuredContent"]["instruction"].endswith("## Phase 2\nCount their wings.")
    assert (done["outcome"], done["grade"]) == ("solved", "measured")


# --- what a time is worth ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "fetch_instruction", "arguments": {"day": 1}}),
        ("resources/read", {"uri": "aoc://day01"}),
        ("resources/read", {"uri": "aoc://day01/input"}),
        ("tools/call", {"name": "start_attempt", "arguments": {**START, "llm_name": "another name"}}),
    ],
)
async def test_who_has_seen_the_puzzle_before_has_only_claimed(whole: Data, method: str, params: Any) -> None:
    async with connect(whole.bridge()) as client:
        await client.request(method, params)
        started = (await client.call("start_attempt", START))["structuredContent"]
        done = await finish(client, started["attempt"], answer="4711")

    assert started["grade"] == done["grade"] == "claimed"
    assert started["notes"] == [
        "This phase was given out to you before, so the time will only count as claimed."
    ]
    assert "grade" not in whole.entries(1)[0]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "fetch_instruction", "arguments": {"day": 1}}),
        ("resources/read", {"uri": "aoc://day01"}),
        ("resources/read", {"uri": "aoc://day01/input"}),
    ],
)
@pytest.mark.parametrize(
    ("who", "reader", "other"),
    [("principal", "token:ann", "token:bob"), ("caller", "127.0.0.1", "192.0.2.1")],
)
async def test_what_a_caller_has_read_over_http_is_known_to_every_process(
    whole: Data, method: str, params: Any, who: str, reader: str, other: str
) -> None:
    """Another worker, another replica, or the same one after a restart."""
    for _ in range(2):
        async with connect(whole.bridge()) as client:
            setattr(client.connection, who, reader)
            await client.request(method, params)
    grades = []
    for caller in (reader, other):
        async with connect(whole.bridge()) as client:
            setattr(client.connection, who, caller)
            start = {**START, "llm_name": f"model of {caller}"}
            grades.append((await client.call("start_attempt", start))["structuredContent"]["grade"])

    assert grades == ["claimed", "measured"]


@pytest.mark.parametrize("address", ["127.0.0.2", "::1", "::ffff:127.0.0.1"])
async def test_all_loopback_addresses_are_one_caller(whole: Data, address: str) -> None:
    async with connect(whole.bridge()) as client:
        client.connection.caller = "127.0.0.1"
        await client.call("fetch_instruction", {"day": 1})
        client.connection.caller = address
        started = (await client.call("start_attempt", START))["structuredContent"]

    assert started["grade"] == "claimed"


async def test_processes_over_stdio_can_be_one_caller(whole: Data) -> None:
    grades: list[str] = []
    for name in ("fox", "fox", "owl"):
        async with connect(whole.bridge(AOC_CALLER=name)) as client:
            if not grades:
                await client.call("fetch_instruction", {"day": 1})
            start = {**START, "llm_name": f"model {len(grades)}"}
            grades.append((await client.call("start_attempt", start))["structuredContent"]["grade"])

    assert grades == ["claimed", "claimed", "measured"]


async def test_phase_2_comes_with_phase_1(whole: Data) -> None:
    """A name that has solved phase 1 opens phase 2 to anybody, and its text has that of phase 1 in it."""
    async with connect(whole.bridge()) as client:
        await finish(client, await start(client), answer="4711")
    grades = []
    for names in (("gpt4", "of this caller"), ("gpt4", "of the next caller")):
        async with connect(whole.bridge()) as client:
            client.connection.principal = "token:ann"
            for phase, name in zip((2, 1), names, strict=True):
                start_it = {**START, "phase": phase, "llm_name": name}
                grades.append((await client.call("start_attempt", start_it))["structuredContent"]["grade"])

    assert grades == ["measured", "claimed", "claimed", "claimed"]


async def test_of_attempts_that_began_at_the_same_moment_the_first_is_measured(
    answered: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several processes look at the same moment whether the puzzle was given out, and see nothing."""
    nothing = PastAttempts(set(), Counter(), has_solved_first=False)
    async with connect(answered.bridge()) as one, connect(answered.bridge()) as other:
        with monkeypatch.context() as patch:
            patch.setattr(Workspace, "past_attempts", lambda *_: nothing)
            attempts = [await start(client) for client in (one, other)]
        done = [await finish(one, attempt, answer="4711") for attempt in reversed(attempts)]

    assert [each["grade"] for each in done] == ["claimed", "measured"]
    assert "given out before" in done[0]["notes"][0]


async def test_a_time_that_began_after_its_end_is_claimed(answered: Data) -> None:
    clock = Clock()
    settings = AocSettings(answered.environment())
    async with connect(make_bridge(settings, clock=clock)) as client:
        attempt = await start(client)
    clock.set(clock.now() - 60.0)
    async with connect(make_bridge(settings, clock=clock)) as client:
        done = await finish(client, attempt, answer="4711")

    assert (done["speed_ms"], done["grade"]) == (1, "claimed")


@pytest.mark.parametrize("caller", [None, "token:ann"])
async def test_reading_the_input_of_another_callers_attempt_is_seeing_the_puzzle(
    whole: Data, caller: str | None
) -> None:
    async with connect(whole.bridge()) as client:
        client.connection.principal = "token:bob"
        attempt = await start(client, llm_name="of bob")
    async with connect(whole.bridge()) as client:
        client.connection.principal = caller
        await client.call("read_input", {"attempt": attempt})
        started = (await client.call("start_attempt", START))["structuredContent"]

    assert started["grade"] == "claimed"


async def test_nobody_ends_an_attempt_of_another_token_or_fails_in_its_name(answered: Data) -> None:
    async with connect(answered.bridge()) as client:
        before = is_operator.set(False)
        client.connection.principal = "token:ann"
        own = await start(client)
        client.connection.principal = "token:bob"
        refused = await client.call("finish_attempt", {"attempt": own, "give_up": True})
        await finish(client, await start(client), give_up=True)
        client.connection.principal = "token:ann"
        await finish(client, own, answer="4711")
        rows = (await client.call("speed_leaderboard"))["structuredContent"]["rows"]
        is_operator.reset(before)

    assert refused["isError"]
    assert "There is no attempt" in refused["content"][0]["text"]
    failures = {row["llm"]: row["failed"] for row in rows}
    assert failures == {"gpt4": 0, "gpt4 (by token:bob)": 1}


async def test_a_puzzle_can_be_read_while_attempts_cannot_be_stored(
    whole: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr(Stopwatch, "record_handout", fail)
    async with connect(whole.bridge()) as client:
        client.connection.principal = "token:ann"
        read = await client.call("fetch_instruction", {"day": 1})
        started = (await client.call("start_attempt", START))["structuredContent"]

    assert "Count the gulls." in read["content"][0]["text"]
    assert started["grade"] == "claimed"


async def test_a_second_attempt_of_a_model_is_claimed_also_on_another_server(whole: Data) -> None:
    async with connect(whole.bridge()) as client:
        await start(client)
    async with connect(whole.bridge()) as client:
        same = (await client.call("start_attempt", {**START, "llm_name": "Gpt4 "}))["structuredContent"]
    async with connect(whole.bridge()) as client:
        other = (await client.call("start_attempt", {**START, "llm_name": "o1"}))["structuredContent"]

    assert (same["grade"], other["grade"]) == ("claimed", "measured")


async def test_the_prompt_does_not_give_the_puzzle_away(whole: Data) -> None:
    async with connect(whole.bridge()) as client:
        await client.request("prompts/get", {"name": "solve_day", "arguments": {"day": "1"}})
        started = (await client.call("start_attempt", START))["structuredContent"]

    assert started["grade"] == "measured"


async def test_without_a_known_answer_the_time_is_claimed_and_that_is_said_at_the_start(data: Data) -> None:
    data.puzzle(1, "Count the gulls.")
    async with connect(data.bridge()) as client:
        started = (await client.call("start_attempt", START))["structuredContent"]
        done = await finish(client, started["attempt"], answer="anything")

    assert "No answer to this phase is known here" in started["notes"][0]
    assert (started["grade"], done["outcome"], done["grade"]) == ("claimed", "unchecked", "claimed")


async def test_guessing_ends_after_five_tries(answered: Data) -> None:
    async with connect(answered.bridge()) as client:
        attempt = await start(client)
        guesses = [await finish(client, attempt, answer=str(guess)) for guess in range(4709, 4749)]
        row = (await client.call("speed_leaderboard"))["structuredContent"]["rows"][0]

    assert [guess["outcome"] for guess in guesses[:3]] == ["wrong", "wrong", "solved"]
    assert [guess["tries_left"] for guess in guesses[:3]] == [4, 3, 0]
    assert row["solved"] == 1

    async with connect(answered.bridge()) as client:
        attempt = await start(client, llm_name="guesser")
        guesses = [await finish(client, attempt, answer=str(guess)) for guess in range(4700, 4740)]

    assert [guess["outcome"] for guess in guesses] == [*["wrong"] * 4, *["failed"] * 36]
    assert len(answered.entries(1)) == 1


@pytest.mark.parametrize("names", [("gpt4",), ("another", "a third")])
@pytest.mark.parametrize("caller", [None, "token:ann"])
async def test_tries_count_in_all_attempts_together(
    answered: Data, names: tuple[str, ...], caller: str | None
) -> None:
    """Or a search with "too high" and "too low" in other attempts would find the answer for the first."""
    async with connect(answered.bridge()) as client:
        client.connection.principal = caller
        first = await start(client)
        for number, name in enumerate(names * 2):
            other = await start(client, llm_name=name)
            for guess in range(3):
                await finish(client, other, answer=str(5000 - 10 * number - guess))
        done = await finish(client, first, answer="4711")
        again = await finish(client, first, answer="4711")

    assert (done["outcome"], done["grade"], again["grade"]) == ("solved", "claimed", "claimed")
    assert done["notes"][0].startswith("The time is only claimed: it took over 5 tries in several attempts")
    assert "grade" not in answered.entries(1)[0]


async def test_tries_of_other_callers_do_not_count(answered: Data) -> None:
    async with connect(answered.bridge()) as client, connect(answered.bridge()) as other:
        attempt = await start(client)
        guesser = await start(other, llm_name="guesser")
        for guess in range(5):
            await finish(other, guesser, answer=str(guess))
        done = await finish(client, attempt, answer="4711")

    assert done["grade"] == "measured"


async def test_nothing_used_is_not_the_same_as_unknown(answered: Data) -> None:
    async with connect(answered.bridge()) as client:
        await finish(client, await start(client), answer="4711", tokens=0, cost_usd=0)
        (row,) = (await client.call("speed_leaderboard"))["structuredContent"]["rows"]

    assert (row["tokens"], row["cost_usd"]) == (0.0, 0.0)


# --- an attempt ends once ----------------------------------------------------------------------------------


async def test_an_attempt_that_is_finished_again_gives_its_first_result_and_one_record(
    answered: Data,
) -> None:
    async with connect(answered.bridge()) as client, connect(answered.bridge()) as other:
        attempt = await start(client)
        arguments = {"attempt": attempt, "answer": "4711", "tokens": 7}
        together = await asyncio.gather(
            *(peer.call("finish_attempt", arguments) for peer in (client, other, client, other, client))
        )
        last = await finish(client, attempt, give_up=True)

    results = [one["structuredContent"] for one in together] + [last]
    assert {(one["outcome"], one["speed_ms"], one["recorded"]) for one in results} == {
        ("solved", results[0]["speed_ms"], True)
    }
    (entry,) = answered.entries(1)
    assert entry["details"] == {"attempt": attempt, "tries": 1, "wrong": 0, "tokens": 7}


async def test_a_crash_between_the_end_and_the_record_loses_nothing(
    answered: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_: object) -> None:
        raise OSError("killed")

    async with connect(answered.bridge()) as client:
        attempt = await start(client)
        with monkeypatch.context() as patched:
            patched.setattr(Workspace, "record_attempt", crash)
            await client.answer_to(
                "tools/call", {"name": "finish_attempt", "arguments": {"attempt": attempt, "answer": "4711"}}
            )
    monkeypatch.setattr(aoc_bridge, "PREPARE_AFTER_SECONDS", 0.0)
    async with connect(answered.bridge()) as client, asyncio.timeout(PATIENCE):
        history: Any = {"total": 0}
        while not history["total"]:  # the start of the server records it, without another call
            history = (await client.call("speed_history"))["structuredContent"]
        done = await finish(client, attempt, answer="4711")

    assert (done["outcome"], done["recorded"], done["grade"]) == ("solved", True, "measured")
    assert [entry["speedMs"] for entry in answered.entries(1)] == [done["speed_ms"]]
    assert [(run["speed_ms"], run["grade"]) for run in history["runs"]] == [(done["speed_ms"], "measured")]


@pytest.mark.parametrize(("guesses", "grade"), [(4, "measured"), (5, "claimed")])
async def test_the_fifth_wrong_answer_in_another_attempt_makes_a_time_claimed(
    answered: Data, guesses: int, grade: str
) -> None:
    async with connect(answered.bridge()) as client:
        first = await start(client)
        for number in range(guesses):
            other = await start(client, llm_name="another")
            await finish(client, other, answer=str(5000 - number))
        done = await finish(client, first, answer="4711")

    assert (done["outcome"], done["grade"]) == ("solved", grade)
