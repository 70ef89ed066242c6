"""Recording: what `record_speed` keeps, what it answers, and what it does when it cannot."""

import asyncio
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.aoc.files.names import canonical_name
from bridgehead.aoc.files.recorder import NewRun, Recorder
from bridgehead.aoc.settings import AocSettings
from bridgehead.mcp.revisions import REVISIONS, Revision
from bridgehead.runtime.timing import SystemClock
from tests.aoc.data import CONTRACT, Data, entry, locked
from tests.support.checked import connect
from tests.support.messages import call
from tests.support.stdio_peer import Peer

RUN = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1250}


@pytest.fixture(autouse=True)
def puzzle(data: Data) -> None:
    """Without a puzzle of its day a record is questioned."""
    data.puzzle(1, "Count the gulls.")


async def recorded(data: Data, arguments: dict[str, Any], **settings: str) -> Any:
    async with connect(data.bridge(**settings)) as client:
        return await client.call("record_speed", arguments)


async def refusal(data: Data, arguments: dict[str, Any], **settings: str) -> Any:
    async with connect(data.bridge(**settings), revision=CONTRACT) as client:
        return await client.error("tools/call", {"name": "record_speed", "arguments": arguments})


async def test_the_average_is_of_both_phases_of_the_same_llm_without_its_fraction(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1, 2), entry("other", 10_000), entry("gpt4", 4, 1)])

    result = await recorded(data, {**RUN, "speed_ms": 6})

    assert result["content"][0]["text"] == "Recorded gpt4 Day 1 Phase 1: 6ms (avg: 3ms)"


async def test_the_structured_answer_has_the_figures_of_this_llm_day_and_phase(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1, 2), entry("gpt4", 4), entry("gpt4", 5), entry("other", 2)])

    answer = (await recorded(data, {**RUN, "speed_ms": 9}))["structuredContent"]

    assert answer == {
        "day": 1,
        "phase": 1,
        "llm": "gpt4",
        "speed_ms": 9,
        "timestamp": answer["timestamp"],
        "measure": "solving",
        "source": "claimed",
        "n": 3,
        "best": 4,
        "median": 5,
        "mean": 6.0,
        "stdev": pytest.approx(2.6457513),
    }


async def test_the_first_run_has_no_spread(data: Data) -> None:
    assert (await recorded(data, RUN))["structuredContent"]["stdev"] is None


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


async def test_older_keys_and_unknown_ones_are_read_and_kept(data: Data) -> None:
    older = {
        "llm": "gpt4",
        "phase": 1,
        "speed_ms": 1110,
        "timestamp": "2025-12-06T09:12:44.1234567Z",
        "tokens": 9,
    }
    data.put_speeds(1, {"schema": 2, "day": 1, "entries": [older], "note": "mine"})

    result = await recorded(data, RUN)

    assert result["content"][0]["text"].endswith("(avg: 1180ms)")
    document = json.loads(data.speeds_file(1).read_bytes())
    assert (document["schema"], document["note"], document["entries"][1]) == (2, "mine", older)


async def test_the_name_is_kept_without_the_space_around_it(data: Data) -> None:
    await recorded(data, {**RUN, "llm_name": "  gpt 4\t"})

    assert data.entries(1)[0]["llm"] == "gpt 4"


@pytest.mark.parametrize("time_ms", [0, 2**63 - 1])
async def test_the_smallest_and_the_largest_time_are_kept(data: Data, time_ms: int) -> None:
    await recorded(data, {**RUN, "speed_ms": time_ms})

    assert data.entries(1)[0]["speedMs"] == time_ms


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029")).filter(
    lambda name: 0 < len(canonical_name(name)) <= 200
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(name=NAMES)
async def test_any_name_comes_back_in_its_one_spelling(data: Data, name: str) -> None:
    text = (await recorded(data, {**RUN, "llm_name": name}))["content"][0]["text"]

    assert text.startswith(f"Recorded {canonical_name(name)} Day 1 Phase 1: 1250ms")
    assert data.entries(1)[0]["llm"] == canonical_name(name)


async def test_calls_that_wait_together_are_written_together(data: Data) -> None:
    folder = str(data.speeds)
    recorder = Recorder(folder, 10.0, SystemClock())
    inodes: set[int] = set()

    async def record(number: int) -> int:
        done = await recorder.record(NewRun(1, 1, "gpt4", number))
        inodes.add(data.speeds_file(1).stat().st_ino)
        return done.figures.n

    counts = await asyncio.gather(*(record(number) for number in range(200)))

    assert sorted(counts) == list(range(1, 201))
    assert sorted(e["speedMs"] for e in data.entries(1)) == list(range(200))
    assert len(inodes) < 10  # each write makes another file


async def test_a_record_sees_what_others_wrote_in_between(data: Data) -> None:
    async with connect(data.bridge()) as one, connect(data.bridge()) as other:
        counts = [
            (await client.call("record_speed", RUN))["structuredContent"]["n"]
            for client in (one, other, one, other)
        ]

    assert counts == [1, 2, 3, 4]
    assert len(data.entries(1)) == 4


async def test_a_file_that_was_taken_away_begins_anew(data: Data) -> None:
    async with connect(data.bridge()) as client:
        await client.call("record_speed", RUN)
        data.speeds_file(1).unlink()
        result = await client.call("record_speed", RUN)

    assert result["structuredContent"]["n"] == 1


async def test_a_folder_that_was_taken_away_is_made_again(data: Data) -> None:
    async with connect(data.bridge()) as client:
        await client.call("record_speed", RUN)
        for path in data.speeds.iterdir():
            path.unlink()
        data.speeds.rmdir()
        await client.call("record_speed", RUN)

    assert len(data.entries(1)) == 1


CORRUPT = [b"", b"{", b'{"day": 2, "entries": []}', b'{"day": 1, "entries": [], "entries": []}']


@pytest.mark.parametrize("content", CORRUPT)
async def test_a_corrupt_file_is_refused_by_name_and_never_changed(data: Data, content: bytes) -> None:
    data.put_speeds(1, content)

    error = await refusal(data, RUN)

    assert error["code"] == -1
    assert str(data.speeds_file(1)) in error["message"]
    assert "bridgehead aoc check" in error["message"]
    assert data.speeds_file(1).read_bytes() == content


async def test_a_folder_in_the_place_of_the_file_is_refused(data: Data) -> None:
    data.speeds_file(1).mkdir(parents=True)

    error = await refusal(data, RUN)

    assert (error["code"], data.speeds_file(1).is_dir()) == (-1, True)


async def test_a_lock_that_is_held_too_long_is_a_clear_error(data: Data) -> None:
    before = data.put_speeds(1, [entry("gpt4", 1)])
    with locked(data.speeds):
        error = await refusal(data, RUN, AOC_LOCK_WAIT_MS="50")

    assert error["code"] == -1
    assert error["message"].startswith(f"{data.speeds_file(1)} cannot be written: another process has locked")
    assert "Record again" in error["message"]
    assert data.speeds_file(1).read_bytes() == before


async def test_a_link_stays_a_link_and_a_mode_stays_as_it_is(data: Data, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    data.speeds.mkdir()
    elsewhere.write_bytes(b'{"day": 1, "entries": []}')
    elsewhere.chmod(0o640)
    data.speeds_file(1).symlink_to(elsewhere)

    await recorded(data, RUN)

    assert data.speeds_file(1).is_symlink()
    assert len(data.entries(1)) == 1
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o640


async def test_what_killed_writers_left_is_swept(data: Data) -> None:
    data.speeds.mkdir()
    stray = data.speeds / ".bridgehead-one.tmp"
    fresh = data.speeds / ".bridgehead-two.tmp"
    for path in (stray, fresh):
        path.write_bytes(b"half")
    an_hour_ago = time.time() - 3600
    os.utime(stray, (an_hour_ago, an_hour_ago))

    await recorded(data, RUN)

    assert (stray.exists(), fresh.exists()) == (False, True)


def answer(peer: Peer) -> Any:
    return peer.request("tools/call", call("record_speed", RUN))


def test_a_full_disk_is_a_clear_error_and_leaves_the_file_as_it_was(data: Data) -> None:
    before = data.put_speeds(1, [entry("gpt4", number) for number in range(100)])

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    with data.served(popen={"preexec_fn": small_disk}, is_cut_short=True) as peer:
        peer.shake_hands("2024-11-05")
        error = answer(peer)["error"]

    assert error["code"] == -1
    assert str(data.speeds_file(1)) in error["message"]
    assert "Nothing was recorded" in error["message"]
    assert data.speeds_file(1).read_bytes() == before
    assert list(data.speeds.glob("*.tmp")) + list(data.speeds.glob(".*.tmp")) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_cannot_be_written_to_is_a_clear_error(data: Data) -> None:
    before = data.put_speeds(1, [entry("gpt4", 1)])
    data.speeds.chmod(0o555)
    try:
        error = await refusal(data, RUN)
    finally:
        data.speeds.chmod(0o755)

    assert (error["code"], "Nothing was recorded" in error["message"]) == (-1, True)
    assert data.speeds_file(1).read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /sys")
async def test_a_file_system_that_cannot_be_written_to_is_a_clear_error(data: Data) -> None:
    error = await refusal(data, RUN, AOC_SPEEDS_DIR="/sys")

    assert (error["code"], "Nothing was recorded" in error["message"]) == (-1, True)
    assert "/sys/day01.json" in error["message"]


def test_a_record_is_there_after_a_kill_right_after_its_answer(data: Data) -> None:
    with data.served(is_cut_short=True) as peer:
        peer.shake_hands()
        answer(peer)
        peer.process.send_signal(signal.SIGKILL)
        peer.process.wait(10)

    assert [e["speedMs"] for e in data.entries(1)] == [1250]


def test_what_is_being_written_is_answered_before_the_process_ends(data: Data) -> None:
    with data.served() as peer:
        peer.shake_hands()
        peer.send(
            *(
                {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": call("record_speed", RUN)}
                for n in range(100)
            )
        )
        peer.close_input()
        answers = peer.rest()
        assert peer.exit_code() == 0

    assert sorted(message["id"] for message in answers) == list(range(100))
    assert len(data.entries(1)) == 100


async def test_a_cancelled_call_is_written_whole_or_not_at_all(data: Data) -> None:
    async with connect(data.bridge()) as client:
        started = [client.start("tools/call", {"name": "record_speed", "arguments": RUN}) for _ in range(40)]
        await asyncio.sleep(0)
        for request_id, _ in started[::2]:
            await client.notify("notifications/cancelled", {"requestId": request_id})
        answers = await asyncio.gather(*(task for _, task in started))

    given_answers = [answer for answer in answers if answer is not None]
    assert len(given_answers) == 20
    assert 20 <= len(data.entries(1)) <= 40


def test_the_settings_that_recording_needs_are_checked_at_the_start(data: Data) -> None:
    assert AocSettings(data.environment(AOC_LOCK_WAIT_MS="50")).lock_wait_ms == 50


def test_a_reader_sees_a_whole_file_at_every_moment(data: Data) -> None:
    program = (
        "import json, sys\n"
        "path, seen = sys.argv[1], 0\n"
        "while seen < 60:\n"
        "    try: data = open(path, 'rb').read()\n"
        "    except FileNotFoundError: continue\n"
        "    seen = len(json.loads(data)['entries'])\n"
    )
    reader = subprocess.Popen([sys.executable, "-c", program, str(data.speeds_file(1))])
    with data.served() as peer:
        peer.shake_hands()
        for _ in range(60):
            answer(peer)

    assert reader.wait(20) == 0


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_a_failure_has_the_contracts_code_for_its_revision_and_is_readable_for_newer_ones(
    data: Data, revision: Revision
) -> None:
    data.put_speeds(1, b"{")
    params = {"name": "record_speed", "arguments": RUN}
    wrong = {"name": "record_speed", "arguments": {**RUN, "phase": 3}}
    async with connect(data.bridge(), revision=revision) as client:
        answers = [await client.answer_to("tools/call", one) for one in (params, wrong)]

    messages = [
        f"{data.speeds_file(1)} is corrupt and was left as it is: ",
        "Invalid params for record_speed: phase must be 1 or 2 (got 3).",
    ]
    for answer, code, message in zip(answers, (-1, -32602), messages, strict=True):
        if revision == CONTRACT:
            assert answer["error"]["code"] == code
            assert answer["error"]["message"].startswith(message)
        else:
            assert answer["result"]["isError"]
            assert answer["result"]["content"][0]["text"].startswith(message)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"phase": 3}, "phase must be 1 or 2 (got 3)."),
        ({"day": 26}, "day must be between 1 and 25 (got 26)."),
        ({"day": "1"}, "day must be an integer (got '1')."),
        ({"speed_ms": 12.5}, "speed_ms must be an integer (got 12.5)."),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_in_words(data: Data, wrong: Any, words: str) -> None:
    error = await refusal(data, {**RUN, **wrong})

    assert (error["code"], error["message"]) == (-32602, f"Invalid params for record_speed: {words}")


async def test_a_missing_argument_is_named(data: Data) -> None:
    error = await refusal(data, {"day": 1, "llm_name": "a", "speed_ms": 1})

    assert error["message"] == "Invalid params for record_speed: phase is required."
    assert "llm_name is missing" in (await refusal(data, {"day": 1, "phase": 1, "speed_ms": 1}))["message"]


async def test_a_whole_float_is_an_integer(data: Data) -> None:
    await recorded(data, {**RUN, "day": 1.0, "speed_ms": 1250.0})

    assert data.entries(1)[0]["speedMs"] == 1250


async def test_llm_and_llm_name_are_both_understood_but_not_when_they_differ(data: Data) -> None:
    run = {name: value for name, value in RUN.items() if name != "llm_name"}
    await recorded(data, {**run, "llm": "gpt4"})
    await recorded(data, {**RUN, "llm": "gpt4"})

    assert [e["llm"] for e in data.entries(1)] == ["gpt4", "gpt4"]
    assert "are different" in (await refusal(data, {**RUN, "llm": "other"}))["message"]


async def test_a_record_says_what_was_timed_and_who_took_the_time(data: Data) -> None:
    answer = await recorded(data, {**RUN, "measure": "execution", "source": "measured"})

    assert {**data.entries(1)[0], "timestamp": ""} == entry(
        "gpt4", 1250, 1, "", measure="execution", source="measured"
    )
    assert answer["structuredContent"]["measure"] == "execution"
    assert answer["structuredContent"]["source"] == "measured"


async def test_figures_and_the_average_are_of_one_measure(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 100_000), entry("gpt4", 3, measure="execution")])

    answer = await recorded(data, {**RUN, "speed_ms": 5, "measure": "execution"})

    assert answer["content"][0]["text"] == "Recorded gpt4 Day 1 Phase 1: 5ms (avg: 4ms)"
    assert answer["structuredContent"]["n"] == 2


async def test_the_original_programs_key_is_written_where_the_setting_says_so(data: Data) -> None:
    await recorded(data, RUN, AOC_RECORD_KEYS="speed_ms")

    assert list(data.entries(1)[0]) == ["llm", "phase", "speed_ms", "timestamp"]
    assert (await recorded(data, RUN))["structuredContent"]["n"] == 2


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
    answer = await recorded(data, {**RUN, **run})
    text = answer["content"][0]["text"]

    assert f"Is this right? {doubt}." in text
    assert f'timestamp="{answer["structuredContent"]["timestamp"]}"' in text


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


def test_reads_and_writes_of_one_connection_are_sequential(data: Data) -> None:
    with data.served() as peer:
        peer.shake_hands("2024-11-05")
        for number in range(20):
            peer.send(
                {
                    "jsonrpc": "2.0",
                    "id": f"w{number}",
                    "method": "tools/call",
                    "params": call("record_speed", RUN),
                },
                {
                    "jsonrpc": "2.0",
                    "id": f"r{number}",
                    "method": "tools/call",
                    "params": call("speed_history", {}),
                },
            )
            peer.answer_to(f"w{number}")
            text = peer.answer_to(f"r{number}")["result"]["content"][0]["text"]
            assert len(text.splitlines()) == number + 1
