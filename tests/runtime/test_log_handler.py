"""The log handler: a reader who does not read holds nobody up, and learns how much there was."""

import json
import logging
import os
import time
from collections.abc import Iterator

import pytest

from bridgehead.runtime import logs
from tests.support.waiting import PATIENCE

part = logs.logger("tested")


@pytest.fixture
def reader() -> Iterator[int]:
    """The end of a pipe that everything is logged to; other tests get the logging back that they had."""
    root = logging.getLogger(logs.ROOT)
    before = (root.handlers[:], root.level, root.propagate)
    end, other = os.pipe()
    with os.fdopen(other, "w", encoding="utf-8") as stream:
        logs.configure("info", "json", stream)
        yield end
        root.handlers[:], root.level, root.propagate = before
        os.close(end)


def test_a_log_that_nobody_reads_holds_nobody_up_and_says_later_what_is_missing(reader: int) -> None:
    begun = time.monotonic()
    for number in range(2000):
        part.info("event", number=number, text="x" * 200)
    assert time.monotonic() - begun < PATIENCE

    lines = os.read(reader, 1 << 20).decode().splitlines()
    part.info("read again")
    confession, last = (json.loads(line) for line in os.read(reader, 1 << 20).decode().splitlines())

    assert [json.loads(line)["number"] for line in lines] == list(range(len(lines)))
    assert 100 < len(lines) < 2000
    assert (confession["level"], confession["count"]) == ("warn", 2000 - len(lines))
    assert last["event"] == "read again"


@pytest.mark.parametrize("letter", ["x", "ü"])
def test_a_long_line_comes_as_a_whole_where_it_is_read(reader: int, letter: str) -> None:
    part.info("long", text=letter * 12_000)

    assert json.loads(os.read(reader, 1 << 20))["text"] == letter * 12_000


def test_one_that_is_longer_than_there_is_room_for_is_given_up_in_time(reader: int) -> None:
    begun = time.monotonic()
    part.info("endless", text="x" * 1_000_000)

    assert time.monotonic() - begun < PATIENCE
    assert os.read(reader, 100).startswith(b'{"time"')
