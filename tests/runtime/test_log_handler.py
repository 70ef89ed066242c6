"""The log handler: a reader who does not read holds nobody up, and learns how much there was."""

import asyncio
import io
import json
import logging
import os
import select
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from bridgehead.runtime import log_handler, logs
from tests.support.waiting import PATIENCE, until

part = logs.logger("tested")


@pytest.fixture(params=["asks", "has a thread"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end of a pipe that everything is logged to; other tests get the logging back that they had."""
    if request.param == "has a thread":  # as on Windows
        monkeypatch.setattr(log_handler, "CAN_ASK", False)
    root = logging.getLogger(logs.ROOT)
    before = (root.handlers[:], root.level, root.propagate)
    end, other = os.pipe()
    stream = os.fdopen(other, "w", encoding="utf-8")
    logs.configure("info", "json", stream)
    yield end
    root.handlers[:], root.level, root.propagate = before
    rest = Reading(end)  # what nobody read; closing an end that is being read would wait on Windows
    stream.close()
    rest.join()
    os.close(end)


class Reading:
    """Somebody who reads everything from now on."""

    def __init__(self, reader: int) -> None:
        self._reader = reader
        self.data = b""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        with suppress(OSError):  # the test is over
            while chunk := os.read(self._reader, 1 << 20):
                self.data += chunk

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.data.split(b"\n")[:-1]]


async def test_a_log_that_nobody_reads_holds_nobody_up_and_says_later_what_is_missing(reader: int) -> None:
    begun = time.monotonic()
    for number in range(2000):
        part.info("event", number=number, text="x" * 200)
    assert time.monotonic() - begun < PATIENCE

    reading, tries = Reading(reader), 0
    while not any("count" in line for line in reading.lines):
        part.info("read again")
        tries += 1
        await asyncio.sleep(0.01)
    await until(lambda: reading.lines[-1]["event"] == "read again")
    numbers = [line["number"] for line in reading.lines if line["event"] == "event"]
    lost = [line["count"] for line in reading.lines if "count" in line]
    again = [line for line in reading.lines if line["event"] == "read again"]

    assert numbers == list(range(len(numbers)))
    assert 10 < len(numbers) < 2000
    assert len(numbers) + len(again) + sum(lost) == 2000 + tries


@pytest.mark.parametrize("letter", ["x", "ü"])
async def test_a_long_line_comes_as_a_whole_where_it_is_read(reader: int, letter: str) -> None:
    reading = Reading(reader)
    part.info("long", text=letter * 12_000)
    await until(lambda: reading.lines)

    assert reading.lines[0]["text"] == letter * 12_000


def test_one_that_is_longer_than_there_is_room_for_is_given_up_in_time(reader: int) -> None:
    begun = time.monotonic()
    part.info("endless", text="x" * 1_000_000)

    assert time.monotonic() - begun < PATIENCE
    assert os.read(reader, 100).startswith(b'{"time"')


def test_no_piece_of_a_line_is_longer_than_a_pipe_with_room_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS that is 512 bytes; a longer piece would wait for a reader that may never come."""
    written: list[str] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    monkeypatch.setattr(log_handler, "CAN_ASK", True)
    monkeypatch.setattr(select, "PIPE_BUF", 512, raising=False)
    handler = log_handler.LogHandler(Stream())
    for text in ("x" * 2000, "\U0001f600" * 2000):
        handler.emit(logging.makeLogRecord({"msg": text}))

    assert "".join(written) == "x" * 2000 + "\n" + "\U0001f600" * 2000 + "\n"
    assert max(len(text.encode()) for text in written) <= 512
