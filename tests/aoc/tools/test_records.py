"""Recording: what `record_speed` keeps, what it answers, and what it does when it cannot."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.aoc.files.names import canonical_name
from bridgehead.mcp.revisions import REVISIONS
from bridgehead.runtime.callers import is_operator
from tests.aoc.data import CONTRACT, ONLY_FILES, Data, entry, locked, record, refused_record
from tests.support.checked import connect
from tests.support.messages import call
from tests.support.stdio_peer import Peer

RUN = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1250}


@pytest.fixture(autouse=True)
def puzzle(data: Data) -> None:
    """Without a puzzle of its day a record is questioned."""
    data.puzzle(1, "Count the gulls.")


async def test_the_average_is_of_both_phases_of_the_same_llm_without_its_fraction(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1, 2), entry("other", 10_000), entry("gpt4", 4, 1)])

    result = await record(data, {**RUN, "speed_ms": 6})

    assert result["content"][0]["text"] == "Recorded gpt4 Day 1 Phase 1: 6ms (avg: 3ms)"


async def test_the_structured_answer_has_the_figures_of_this_llm_day_and_phase(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1, 2), entry("gpt4", 4), entry("gpt4", 5), entry("other", 2)])

    answer = (await record(data, {**RUN, "speed_ms": 9}))["structuredContent"]

    assert answer == {
        "day": 1,
        "phase": 1,
        "llm": "gpt4",
        "speed_ms": 9,
        "timestamp": answer["timestamp"],
        "id": answer["id"],
        "measure": "solving",
        "grade": "claimed",
        "n": 3,
        "best": 4,
        "median": 5,
        "mean": 6.0,
        "stdev": pytest.approx(2.6457513),
    }


async def test_the_first_run_has_no_spread(data: Data) -> None:
    assert (await record(data, RUN))["structuredContent"]["stdev"] is None


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_a_record_is_made_in_every_revision(data: Data, revision: Any) -> None:
    async with connect(data.bridge(), revision=revision) as client:
        text = await client.text("record_speed", RUN)

    assert text == "Recorded gpt4 Day 1 Phase 1: 1250ms (avg: 1250ms)"
    assert len(data.entries(1)) == 1


async def test_the_newest_record_is_the_first_in_the_file(data: Data) -> None:
    async with connect(data.bridge()) as client:
        for time_ms in (1, 2, 3):
            await client.call("record_speed", {**RUN, "speed_ms": time_ms})

    assert [e["speedMs"] for e in data.entries(1)] == [3, 2, 1]


@ONLY_FILES
async def test_older_keys_and_unknown_ones_are_read_and_kept(data: Data) -> None:
    older = {
        "llm": "gpt4",
        "phase": 1,
        "speed_ms": 1110,
        "timestamp": "2025-12-06T09:12:44.1234567Z",
        "tokens": 9,
    }
    data.put_speeds(1, {"schema": 2, "day": 1, "entries": [older], "note": "mine"})

    result = await record(data, RUN)

    assert result["content"][0]["text"].endswith("(avg: 1180ms)")
    document = json.loads(data.speeds_file(1).read_bytes())
    assert (document["schema"], document["note"], document["entries"][1]) == (2, "mine", older)


async def test_the_name_is_kept_without_the_space_around_it(data: Data) -> None:
    await record(data, {**RUN, "llm_name": "  gpt 4\t"})

    assert data.entries(1)[0]["llm"] == "gpt 4"


@pytest.mark.parametrize("time_ms", [0, 2**63 - 1])
async def test_the_smallest_and_the_largest_time_are_kept(data: Data, time_ms: int) -> None:
    await record(data, {**RUN, "speed_ms": time_ms})

    assert data.entries(1)[0]["speedMs"] == time_ms


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029")).filter(
    lambda name: 0 < len(canonical_name(name)) <= 200
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(name=NAMES)
async def test_any_name_comes_back_in_its_one_spelling(data: Data, name: str) -> None:
    text = (await record(data, {**RUN, "llm_name": name}))["content"][0]["text"]

    assert text.startswith(f"Recorded {canonical_name(name)} Day 1 Phase 1: 1250ms")
    assert data.entries(1)[0]["llm"] == canonical_name(name)


CORRUPT = [b"", b"{", b'{"day": 2, "entries": []}', b'{"day": 1, "entries": [], "entries": []}']


@ONLY_FILES
@pytest.mark.parametrize("content", CORRUPT)
async def test_a_corrupt_file_is_refused_by_name_and_never_changed(data: Data, content: bytes) -> None:
    data.put_speeds(1, content)

    error = await refused_record(data, RUN)

    assert error["code"] == -1
    assert str(data.speeds_file(1)) in error["message"]
    assert "bridgehead aoc check" in error["message"]
    assert data.speeds_file(1).read_bytes() == content


@ONLY_FILES
async def test_a_folder_in_the_place_of_the_file_is_refused(data: Data) -> None:
    data.speeds_file(1).mkdir(parents=True)

    error = await refused_record(data, RUN)

    assert (error["code"], data.speeds_file(1).is_dir()) == (-1, True)


@ONLY_FILES
async def test_a_lock_that_is_held_too_long_is_a_clear_error(data: Data) -> None:
    before = data.put_speeds(1, [entry("gpt4", 1)])
    with locked(data.speeds):
        error = await refused_record(data, RUN, lock_wait=0.05)

    assert error["code"] == -1
    assert error["message"].startswith(f"{data.speeds_file(1)} cannot be written: another process has locked")
    assert "for 0.05 s. Nothing was recorded. Record again" in error["message"]
    assert data.speeds_file(1).read_bytes() == before


def answer(peer: Peer) -> Any:
    return peer.request("tools/call", call("record_speed", RUN))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"phase": 3}, "phase must be 1 or 2 (got 3)."),
        ({"day": 26}, "day must be between 1 and 25 (got 26)."),
        ({"day": "1"}, "day must be an integer (got '1'): send 1 without quotes around it."),
        ({"speed_ms": 12.5}, "speed_ms must be an integer (got 12.5)."),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_in_words(data: Data, wrong: Any, words: str) -> None:
    error = await refused_record(data, {**RUN, **wrong})

    assert (error["code"], error["message"]) == (-32602, f"Invalid params for record_speed: {words}")


async def test_a_missing_argument_is_named(data: Data) -> None:
    error = await refused_record(data, {"day": 1, "llm_name": "a", "speed_ms": 1})

    assert error["message"] == "Invalid params for record_speed: phase is required."
    assert (
        "llm_name is missing"
        in (await refused_record(data, {"day": 1, "phase": 1, "speed_ms": 1}))["message"]
    )


async def test_a_whole_float_is_an_integer(data: Data) -> None:
    await record(data, {**RUN, "day": 1.0, "speed_ms": 1250.0})

    assert data.entries(1)[0]["speedMs"] == 1250


async def test_llm_and_llm_name_are_both_understood_but_not_when_they_differ(data: Data) -> None:
    run = {name: value for name, value in RUN.items() if name != "llm_name"}
    await record(data, {**run, "llm": "gpt4"})
    await record(data, {**RUN, "llm": "gpt4"})

    assert [e["llm"] for e in data.entries(1)] == ["gpt4", "gpt4"]
    assert "are different" in (await refused_record(data, {**RUN, "llm": "other"}))["message"]


async def test_a_record_says_what_was_timed(data: Data) -> None:
    answer = await record(data, {**RUN, "measure": "execution"})

    assert {**data.entries(1)[0], "timestamp": ""} == entry("gpt4", 1250, 1, "", measure="execution")
    assert answer["structuredContent"]["measure"] == "execution"


@pytest.mark.parametrize("source", ["measured", "verified"])
async def test_a_caller_that_says_measured_has_claimed(data: Data, source: str) -> None:
    async with connect(data.bridge()) as client:
        answer = await client.call("record_speed", {**RUN, "speed_ms": 3, "source": source})
        (run,) = (await client.call("speed_history"))["structuredContent"]["runs"]

    assert answer["structuredContent"]["grade"] == run["grade"] == "claimed"
    assert "grade" not in data.entries(1)[0]


async def test_figures_and_the_average_are_of_one_measure(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 100_000), entry("gpt4", 3, measure="execution")])

    answer = await record(data, {**RUN, "speed_ms": 5, "measure": "execution"})

    assert answer["content"][0]["text"] == "Recorded gpt4 Day 1 Phase 1: 5ms (avg: 4ms)"
    assert answer["structuredContent"]["n"] == 2


@ONLY_FILES
async def test_the_original_programs_key_is_written_where_the_setting_says_so(data: Data) -> None:
    await record(data, RUN, AOC_RECORD_KEYS="speed_ms")

    assert list(data.entries(1)[0]) == ["llm", "phase", "speed_ms", "timestamp"]
    assert (await record(data, RUN))["structuredContent"]["n"] == 2


@pytest.mark.parametrize(
    ("run", "doubt"),
    [
        ({"speed_ms": 0}, "0 ms is less than any solution takes"),
        ({"day": 2}, "Day 2 has no puzzle here"),
        ({"day": 13}, "The event of 2025 has 12 days"),
    ],
)
async def test_what_looks_wrong_is_questioned_with_how_to_take_it_back(
    data: Data, run: dict[str, int], doubt: str
) -> None:
    answer = await record(data, {**RUN, **run})
    contract, notes = (block["text"] for block in answer["content"])
    structured = answer["structuredContent"]

    assert contract.startswith("Recorded gpt4 ")
    assert "\n" not in contract
    assert structured["notes"] == [f"Is this right? {doubt}."]
    assert f'withdraw_record(day={structured["day"]}, id="{structured["id"]}")' in structured["next"][0]
    assert notes == f"Note: {structured['notes'][0]}\nNext: {structured['next'][0]}"


@pytest.fixture
def as_token(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls are those of a token over HTTP, not of the operator."""
    before = is_operator.set(False)
    yield
    is_operator.reset(before)


async def test_only_who_made_a_record_withdraws_it_and_counts_it_again(data: Data, as_token: None) -> None:
    data.put_speeds(1, [entry("gpt4", 900, 1, "2025-12-01T00:00:00.000Z")])
    async with connect(data.bridge()) as client:
        client.connection.principal = "token:ann"
        made = (await client.call("record_speed", {**RUN, "speed_ms": 1}))["structuredContent"]
        which = {"day": 1, "id": made["id"]}
        of_the_operator = {"day": 1, "phase": 1, "llm_name": "gpt4", "timestamp": "2025-12-01T00:00:00.000Z"}
        client.connection.principal = "token:bob"
        refused = [await client.call("withdraw_record", one) for one in (which, of_the_operator)]
        client.connection.principal = "token:ann"
        withdrawn = await client.text("withdraw_record", which)
        board = (await client.call("speed_leaderboard"))["structuredContent"]
        again = await client.text("withdraw_record", {**which, "undo": True})
        after = (await client.call("speed_leaderboard"))["structuredContent"]

    for answer in refused:
        assert answer["isError"]
        assert "was made by somebody else" in answer["content"][0]["text"]
    assert (withdrawn[:10], again[:13]) == ("Withdrawn:", "Counts again:")
    assert "Withdrawn, not counted: gpt4 1. speed_history shows them." in board["notes"]
    assert [row["n"] for row in (*board["rows"], *after["rows"])] == [1, 2]
    assert not any("Withdrawn" in note for note in after["notes"])


async def test_the_operator_withdraws_what_anybody_recorded(data: Data) -> None:
    async with connect(data.bridge()) as client:
        client.connection.principal = "token:ann"
        made = (await client.call("record_speed", RUN))["structuredContent"]
        client.connection.principal = None
        text = await client.text("withdraw_record", {"day": made["day"], "id": made["id"]})

    assert text.startswith("Withdrawn: gpt4")


async def test_a_client_of_the_contract_is_asked_nothing(data: Data) -> None:
    async with connect(data.bridge(), revision=CONTRACT) as client:
        text = await client.text("record_speed", {**RUN, "day": 9, "speed_ms": 0})

    assert text == "Recorded gpt4 Day 9 Phase 1: 0ms (avg: 0ms)"


async def test_a_wrong_record_can_be_taken_back_and_is_kept_marked_and_excluded(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 900, 1, "2025-12-01T00:00:00.000Z"), entry("other", 1000)])
    async with connect(data.bridge()) as client:
        made = (await client.call("record_speed", {**RUN, "speed_ms": 1}))["structuredContent"]
        which = {"day": 1, "phase": 1, "llm_name": "gpt4", "timestamp": made["timestamp"]}
        text = await client.text("withdraw_record", which)
        again = await client.call("withdraw_record", which)
        board = (await client.call("speed_leaderboard"))["structuredContent"]
        history = (await client.call("speed_history"))["structuredContent"]

    assert text == f"Withdrawn: gpt4 Day 1 Phase 1: 1ms of {made['timestamp']}"
    assert again["isError"]
    assert "has no record of gpt4" in again["content"][0]["text"]
    assert [(row["llm"], row["n"], row["best"]) for row in board["rows"]] == [
        ("gpt4", 1, 900),
        ("other", 1, 1000),
    ]
    assert [run["withdrawn"] for run in history["runs"] if run["speed_ms"] == 1] == [True]
    kept = data.entries(1)[0]
    assert (kept["speedMs"], list(kept)[-1]) == (1, "withdrawn")
    assert len(data.entries(1)) == 3
