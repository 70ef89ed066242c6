"""Recorder: many calls at once, each answered when its record is on the disk."""

import asyncio
import subprocess
import sys
from typing import Any

from bridgehead.aoc.files.recorder import NewRun, Recorder
from bridgehead.runtime.timing import SystemClock
from tests.aoc.data import Data
from tests.support.checked import connect
from tests.support.messages import call
from tests.support.posix import KILL
from tests.support.stdio_peer import Peer

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
