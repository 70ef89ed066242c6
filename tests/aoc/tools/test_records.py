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
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.aoc.files.recorder import Recorder
from bridgehead.aoc.settings import AocSettings
from bridgehead.mcp.revisions import REVISIONS
from bridgehead.runtime.timing import SystemClock
from tests.aoc.data import Data, entry
from tests.support.checked import connect
from tests.support.messages import call
from tests.support.stdio_peer import Peer

RUN = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1250}


async def recorded(data: Data, arguments: dict[str, Any], **settings: str) -> Any:
    async with connect(data.bridge(**settings)) as client:
        return await client.call("record_speed", arguments)


async def refusal(data: Data, arguments: dict[str, Any], **settings: str) -> Any:
    async with connect(data.bridge(**settings)) as client:
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
    lambda name: 0 < len(name.strip()) <= 200
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(name=NAMES)
async def test_any_name_comes_back_intact(data: Data, name: str) -> None:
    text = (await recorded(data, {**RUN, "llm_name": name}))["content"][0]["text"]

    assert text.startswith(f"Recorded {name.strip()} Day 1 Phase 1: 1250ms")
    assert data.entries(1)[0]["llm"] == name.strip()


async def test_calls_that_wait_together_are_written_together(data: Data) -> None:
    folder = str(data.speeds)
    recorder = Recorder(folder, 10.0, SystemClock())
    inodes: set[int] = set()

    async def record(number: int) -> int:
        done = await recorder.record(1, 1, "gpt4", number)
        inodes.add(data.speeds_file(1).stat().st_ino)
        return done.figures.n

    counts = await asyncio.gather(*(record(number) for number in range(200)))

    assert sorted(counts) == list(range(1, 201))
    assert sorted(e["speedMs"] for e in data.entries(1)) == list(range(200))
    assert len(inodes) < 10  # each write makes another file


async def test_days_do_not_wait_for_each_other(data: Data) -> None:
    data.speeds.mkdir()
    async with connect(data.bridge()) as client:
        with FileLock(data.speeds / ".day01.lock"):
            _, held_up = client.start("tools/call", {"name": "record_speed", "arguments": RUN})
            await client.call("record_speed", {**RUN, "day": 2})
            assert (held_up.done(), len(data.entries(2))) == (False, 1)
        await held_up

    assert len(data.entries(1)) == 1


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
    with FileLock(data.speeds / ".day01.lock"):
        error = await refusal(data, RUN, AOC_LOCK_WAIT_MS="50")

    assert error["code"] == -1
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
        peer.shake_hands()
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
