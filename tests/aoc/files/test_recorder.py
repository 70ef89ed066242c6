"""Recorder: many calls at once, each answered when its record is on the disk."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.files import recorder
from bridgehead.aoc.files.day_file import DayFile
from bridgehead.aoc.files.entries import NewEntry, Wanted
from bridgehead.aoc.files.recorder import NewRun, Recorder, key_of
from bridgehead.mcp import current_worker
from bridgehead.runtime.errors import InvalidArgument, StorageError
from bridgehead.runtime.timing import SystemClock
from tests.aoc.data import Data
from tests.support.checked import connect
from tests.support.messages import call
from tests.support.posix import KILL
from tests.support.stdio_peer import Peer
from tests.support.waiting import PATIENCE, until

LONG = "long-" * 40
"""With the folders that it is in, more than Windows takes in a path that is not marked as a long one."""
RUN = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1250}


def answer(peer: Peer) -> Any:
    return peer.request("tools/call", call("record_speed", RUN))


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


def test_a_record_is_there_after_a_kill_right_after_its_answer(data: Data) -> None:
    with data.served(is_cut_short=True) as peer:
        peer.shake_hands()
        answer(peer)
        peer.process.send_signal(KILL)
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


@pytest.mark.parametrize("name", ["a folder", "Jürgen", "日本", "100%41", "c++ & d", LONG])
def test_the_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    before = "\\\\?\\" if name == LONG and sys.platform == "win32" else ""
    data = Data(Path(f"{before}{tmp_path}") / name)
    data.puzzle(1, "Count.")
    with data.served() as peer:
        peer.shake_hands()
        told = peer.request("tools/call", call("fetch_instruction", {"day": 1}))
        assert "Count." in told["result"]["content"][0]["text"]
        assert refusals([answer(peer)]) == []

    assert len(data.entries(1)) == 1


def refusals(answers: list[Any]) -> list[str]:
    """Return what was said to those whose record is not there."""
    results = [one["result"] for one in answers]
    return [result["content"][0]["text"] for result in results if result.get("isError")]


_READER = """
import json, pathlib, sys, time
path, stop, pause = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), float(sys.argv[3])
while not stop.exists():
    time.sleep(pause)
    try: data = path.read_bytes()
    except (FileNotFoundError, PermissionError): continue  # Windows: just being replaced
    json.loads(data)
"""


@contextmanager
def reading(data: Data, pause: float) -> Iterator[None]:
    """Read the day's file again and again in another process, and see that it is whole each time."""
    stop = data.speeds.parent / "stop"
    words = [str(data.speeds_file(1)), str(stop), str(pause)]
    reader = subprocess.Popen([sys.executable, "-c", _READER, *words])
    try:
        yield
        stop.touch()
        assert reader.wait(PATIENCE) == 0
    finally:
        reader.kill()
        reader.wait()


def test_a_reader_sees_a_whole_file_at_every_moment(data: Data) -> None:
    # What is open cannot be replaced on Windows, so a reader has to let go of it there.
    with reading(data, pause=0.01 if sys.platform == "win32" else 0.0), data.served() as peer:
        peer.shake_hands()
        answers = [answer(peer) for _ in range(60)]

    assert refusals(answers) == []
    assert len(data.entries(1)) == 60


def test_every_acknowledged_record_is_there_although_a_reader_never_lets_go(data: Data) -> None:
    with reading(data, pause=0.0), data.served() as peer:
        peer.shake_hands()
        answers = [answer(peer) for _ in range(20)]

    refused = refusals(answers)
    assert all("Nothing was recorded" in message for message in refused)
    assert len(data.entries(1)) == 20 - len(refused)
    assert not refused or sys.platform == "win32"


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


# --- in one process ----------------------------------------------------------------------------------------

GPT4 = NewRun(1, 1, "gpt4", 1250)
KEYS = [key_of("ada", str(number)) for number in range(3)]


def open_recorder(data: Data) -> Recorder:
    return Recorder(str(data.speeds), 10.0, SystemClock())


def hold(monkeypatch: pytest.MonkeyPatch, method: str, instead: Callable[..., Any]) -> threading.Event:
    """Let a method of the day file wait until it is released; returns what releases it."""
    released = threading.Event()

    def wait(file: DayFile, *given: Any) -> Any:
        assert released.wait(PATIENCE)
        return instead(file, *given)

    monkeypatch.setattr(DayFile, method, wait)
    return released


async def test_a_key_makes_one_record_and_is_for_no_other(data: Data) -> None:
    one = open_recorder(data)
    first, again = await asyncio.gather(*(one.record(GPT4, key=KEYS[0]) for _ in range(2)))
    later = await one.record(GPT4, key=KEYS[0])

    assert first == again == later
    assert (await one.record(GPT4)).figures.n == 2
    for other in (GPT4._replace(time=1), GPT4._replace(llm="claude"), GPT4._replace(measure="execution")):
        with pytest.raises(InvalidArgument, match="used for another record"):
            await one.record(other, key=KEYS[0])
    assert len(data.entries(1)) == 2


def test_each_caller_has_keys_of_its_own() -> None:
    made = {key_of(principal, key) for principal in (None, "ada", "bob") for key in ("1", "2")}

    assert len(made) == 6
    assert key_of(None, "1") == key_of("", "1")


async def test_a_key_whose_record_failed_or_was_given_up_can_be_used_again(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = open_recorder(data)
    data.put_speeds(1, b"corrupt")
    with pytest.raises(StorageError, match="corrupt"):
        await one.record(GPT4, key=KEYS[0])
    data.speeds_file(1).unlink()
    assert (await one.record(GPT4, key=KEYS[0])).figures.n == 1

    append = DayFile.append
    released = hold(monkeypatch, "append", append)
    given_up = asyncio.create_task(one.record(GPT4, key=KEYS[1]))
    await asyncio.sleep(0)
    given_up.cancel()
    released.set()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert (await one.record(GPT4, key=KEYS[1])).entry.time == 1250


async def test_of_many_keys_the_oldest_is_forgotten(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAX_KEYS", 2)
    one = open_recorder(data)
    for key in KEYS:
        await one.record(GPT4, key=key)
    for key in KEYS[1:]:
        await one.record(GPT4, key=key)
    assert len(data.entries(1)) == 3

    assert (await one.record(GPT4, key=KEYS[0])).figures.n == 4


async def test_whoever_recorded_can_wait_for_it_and_nobody_else_does(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = hold(monkeypatch, "append", DayFile.append)
    one = open_recorder(data)
    recording = [asyncio.create_task(one.record(GPT4, client=7)) for _ in range(2)]
    await asyncio.sleep(0)
    await one.settled(8)
    waiting = asyncio.create_task(one.settled(7))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    released.set()
    await waiting

    assert len(data.entries(1)) == 2
    await asyncio.gather(*recording, one.record(GPT4, client=9))
    assert one._unanswered == {}  # noqa: SLF001 - clients come and go, and leave nothing


async def test_a_record_that_is_given_up_before_it_is_written_is_not(data: Data) -> None:
    one = open_recorder(data)
    recording = asyncio.create_task(one.record(GPT4))
    await asyncio.sleep(0)
    recording.cancel()
    await asyncio.gather(recording, return_exceptions=True)
    await one.close()

    assert not data.speeds_file(1).exists()


async def test_one_who_is_gone_takes_no_answer_from_the_others(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_file: DayFile, _entries: list[NewEntry]) -> None:
        raise StorageError("It is full.")

    one = open_recorder(data)
    for act in (DayFile.append, fail):
        with monkeypatch.context() as patched:
            released = hold(patched, "append", act)
            gone, stays = (asyncio.create_task(one.record(GPT4)) for _ in range(2))
            await until(lambda: one._days and one._days[1].task and not one._days[1]._waiting)  # noqa: SLF001
            gone.cancel()
            await asyncio.sleep(0)
            released.set()
            if act is fail:
                with pytest.raises(StorageError, match="full"):
                    await stays
            else:
                assert (await stays).figures.n == 2


async def test_closing_waits_for_what_is_being_written(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    released = hold(monkeypatch, "append", DayFile.append)
    one = open_recorder(data)
    recording = asyncio.create_task(one.record(GPT4))
    await asyncio.sleep(0)
    closing = asyncio.create_task(one.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    released.set()
    await closing

    assert len(data.entries(1)) == 1
    await recording


# --- the journal of a day ----------------------------------------------------------------------------------


async def test_a_record_is_taken_back_and_returned(data: Data) -> None:
    one = open_recorder(data)
    recorded = await one.record(GPT4)
    entry_of_it = await one.withdraw(1, Wanted(None, "gpt4", 1, recorded.entry.timestamp))

    assert entry_of_it.time == 1250
    assert "withdrawn" in data.entries(1)[0]


async def test_what_is_written_for_many_waits_its_turn_with_none_of_them(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers: list[object] = []
    append = DayFile.append

    def note_append(*given: Any) -> Any:
        workers.append(current_worker.get())
        return append(*given)

    monkeypatch.setattr(DayFile, "append", note_append)
    current_worker.set(("aoc", "ann"))
    await open_recorder(data).record(GPT4)

    assert workers == [("aoc", "")]


def test_records_of_a_command_are_in_the_file_at_once(data: Data) -> None:
    told = open_recorder(data).record_now([GPT4, GPT4._replace(time=7)])

    assert [one.figures.n for one in told] == [1, 2]
    assert [e["speedMs"] for e in data.entries(1)] == [7, 1250]
