"""Old journal: what version 0.3 acknowledged in a journal is counted, and put into the file once."""

import json
import threading
import zlib
from typing import Any

import pytest

from bridgehead.aoc.files.entries import Group, Wanted, id_of
from bridgehead.aoc.files.records import Records, read_day
from bridgehead.runtime import durable
from tests.aoc.data import Data, entry, first_journal, new, open_day, times
from tests.support.checked import connect
from tests.support.waiting import until


def put_journal(data: Data, *speeds: int, torn: bytes = b"") -> None:
    """Write a journal as version 0.3 did, the oldest record first."""
    file = data.speeds_file(1).read_bytes()
    base = {"day": 1, "size": len(file), "crc": zlib.crc32(file), "inside": 29}
    lines = [base, *(entry("gpt4", time) for time in speeds)]
    first_journal(data).write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines) + torn)


def test_readers_count_a_journal_and_the_next_writer_puts_it_into_the_file(large: Data) -> None:
    records = Records(str(large.speeds))
    assert Group("gpt4", 1, "solving") not in records.runs(1, [])[1].groups
    put_journal(large, 1, 2)

    assert records.runs(1, [])[1].groups[Group("gpt4", 1, "solving")].ordered == [1, 2]
    assert times(large)[:3] == [2, 1, 0]
    assert open_day(large).append([new(3)])[0].figures.n == 3

    assert not first_journal(large).exists()
    assert [e["speedMs"] for e in large.entries(1)[:4]] == [3, 2, 1, 0]
    assert len(large.entries(1)) == 4003


def test_a_journal_that_appears_later_is_taken_in_too(large: Data) -> None:
    """A process of version 0.3 may share the folder."""
    file = open_day(large)
    for round_ in range(3):
        assert file.append([new(10 * round_)])[0].figures.n == 2 * round_ + 1
        put_journal(large, 10 * round_ + 1)

    assert file.append([new(99)])[0].figures.n == 7
    assert [e["speedMs"] for e in large.entries(1)[:7]] == [99, 21, 20, 11, 10, 1, 0]


async def test_a_journal_is_taken_in_when_a_server_starts(large: Data) -> None:
    put_journal(large, 5)
    async with connect(large.bridge()) as client:
        await client.call("speed_history", {"day": 2})
        await until(lambda: not first_journal(large).exists())

    assert large.entries(1)[0]["speedMs"] == 5


def test_a_kill_between_the_file_and_its_journal_neither_loses_nor_doubles(
    large: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_journal(large, 1, 1, 2)
    expected = sorted(times(large))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(durable, "remove", killed)
    with pytest.raises(KeyboardInterrupt):
        open_day(large).append([new(7)])
    monkeypatch.undo()

    assert first_journal(large).exists()
    assert sorted(times(large)) == sorted([*expected, 7])
    open_day(large).append([new(8)])
    assert sorted(times(large)) == sorted([*expected, 7, 8])
    assert not first_journal(large).exists()


@pytest.mark.parametrize("torn", [b'{"llm": "gpt4", "pha', b"\xff"])
def test_the_half_line_of_a_killed_writer_does_not_count(large: Data, torn: bytes) -> None:
    put_journal(large, 1, torn=torn)

    open_day(large).append([new(2)])

    assert [e["speedMs"] for e in large.entries(1)[:3]] == [2, 1, 0]


@pytest.mark.parametrize("torn", [b"", b'{"day": 1, "si', b"{}\n"])
def test_a_journal_without_a_beginning_has_no_records(large: Data, torn: bytes) -> None:
    first_journal(large).write_bytes(torn)

    open_day(large).append([new(1)])

    assert times(large)[:2] == [1, 0]
    assert not first_journal(large).exists()


def test_another_program_that_rewrites_the_file_loses_no_record_of_the_journal(large: Data) -> None:
    put_journal(large, 1)
    large.put_speeds(1, [entry("theirs", 5), *large.entries(1)])

    assert times(large)[:2] == [1, 5]
    open_day(large).take_in_journal()
    assert [e["speedMs"] for e in large.entries(1)[:2]] == [1, 5]


def test_a_record_of_a_journal_can_be_withdrawn(large: Data) -> None:
    put_journal(large, 1)
    (found,) = [one for one in read(large) if one.llm == "gpt4"]

    open_day(large).withdraw(Wanted(id_of(1, found)))

    assert "withdrawn" in large.entries(1)[0]
    assert not first_journal(large).exists()


def test_a_file_that_is_moved_away_does_not_take_the_journal_with_it(large: Data) -> None:
    put_journal(large, 1, 2)
    large.speeds_file(1).rename(large.folder / "archive.json")

    assert times(large) == [2, 1]
    assert open_day(large).append([new(3)])[0].figures.n == 3
    assert [e["speedMs"] for e in large.entries(1)] == [3, 2, 1]
    assert not first_journal(large).exists()


def test_a_journal_stays_if_the_file_cannot_be_written(large: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    put_journal(large, 1)
    before = first_journal(large).read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "replace", full)
    with pytest.raises(Exception, match="No space left on device"):
        open_day(large).append([new(2)])
    monkeypatch.undo()

    assert first_journal(large).read_bytes() == before


def test_a_reader_sees_every_record_while_a_journal_is_taken_in(data: Data) -> None:
    data.put_speeds(1, [entry("old", 1)])
    file, is_over, problems = open_day(data), threading.Event(), []
    stored = [0]

    def look() -> None:
        while not is_over.is_set():
            expected = stored[0]
            found = sum(one.llm == "gpt4" for one in read(data))
            if found < expected:
                problems.append((expected, found))

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(12):
        put_journal(data, 100 + number)
        stored[0] += 1
        file.append([new(number)])
        stored[0] += 1
    is_over.set()
    reader.join()

    assert problems == []


def read(data: Data) -> list[Any]:
    found = read_day(str(data.speeds), 1)
    return [] if found is None else found.entries
