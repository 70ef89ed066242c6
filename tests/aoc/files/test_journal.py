"""Journal: records of a large day, on the disk beside its file, never lost and never doubled."""

import json
import os
import threading
import time
from typing import Any

import pytest

from bridgehead.aoc.files import day_file, journal
from bridgehead.aoc.files.day_file import DayFile
from bridgehead.aoc.files.entries import Group
from bridgehead.aoc.files.records import Records, read_day
from bridgehead.runtime import durable
from tests.aoc.data import SECONDS, Data, entry, first_journal, new, open_day, times
from tests.support.checked import connect
from tests.support.messages import call
from tests.support.posix import KILL
from tests.support.waiting import PATIENCE


def test_a_large_file_grows_by_its_journal_and_everything_of_ours_reads_it(large: Data) -> None:
    before = large.speeds_file(1).read_bytes()
    recorded = open_day(large).append([new(1), new(3)])

    assert large.speeds_file(1).read_bytes() == before
    assert times(large)[:2] == [3, 1]
    assert (recorded[1].figures.n, recorded[1].figures.median, recorded[1].average) == (2, 2, 2)
    groups = Records(str(large.speeds)).runs(1, [])[1].groups
    assert groups[Group("gpt4", 1, "solving")].ordered == [1, 3]


def test_folding_puts_the_journal_into_the_file_and_changes_no_other_byte(large: Data) -> None:
    before = large.speeds_file(1).read_bytes()
    file = open_day(large)
    file.append([new(1)])
    file.append([new(2)])

    assert file.fold()

    assert not first_journal(large).exists()
    assert [e["speedMs"] for e in large.entries(1)[:2]] == [2, 1]
    assert large.speeds_file(1).read_bytes().endswith(before[before.index(b"[") + 1 :])
    assert file.append([new(5)])[0].figures.n == 3


def test_a_journal_in_use_is_not_folded_by_another_process(large: Data) -> None:
    open_day(large).append([new(1)])

    assert not open_day(large).fold(idle_seconds=60.0)
    assert first_journal(large).exists()


def test_processes_see_each_others_journal(large: Data) -> None:
    one, other = open_day(large), open_day(large)

    counts = [file.append([new(number)])[0].figures.n for number, file in enumerate((one, other, one, other))]

    assert counts == [1, 2, 3, 4]
    assert times(large)[:4] == [3, 2, 1, 0]


def test_a_kill_between_the_file_and_its_journal_neither_loses_nor_doubles(
    large: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = open_day(large)
    file.append([new(1), new(1), new(2)])
    expected = sorted(times(large))

    def killed(_: DayFile) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(day_file.DayFile, "_drop_journal", killed)
    with pytest.raises(KeyboardInterrupt):
        file.fold()
    monkeypatch.undo()

    assert first_journal(large).exists()
    assert sorted(times(large)) == expected
    open_day(large).append([new(7)])
    assert open_day(large).fold()
    assert sorted(times(large)) == sorted([*expected, 7])


@pytest.mark.parametrize("torn", [b'{"llm": "gpt4", "pha', b"\xff"])
def test_the_half_line_of_a_killed_writer_spoils_no_other(large: Data, torn: bytes) -> None:
    file = open_day(large)
    file.append([new(1)])
    with first_journal(large).open("ab") as out:
        out.write(torn)

    assert times(large)[:1] == [1]
    open_day(large).append([new(2)])
    assert times(large)[:2] == [2, 1]
    open_day(large).fold()
    assert [e["speedMs"] for e in large.entries(1)[:3]] == [2, 1, 0]


@pytest.mark.parametrize("torn", [b"", b'{"day": 1, "si', b"{}\n"])
def test_a_journal_without_a_beginning_is_begun_anew(large: Data, torn: bytes) -> None:
    first_journal(large).write_bytes(torn)

    open_day(large).append([new(1)])

    assert times(large)[:2] == [1, 0]


def test_another_program_that_rewrites_the_file_loses_no_record_of_ours(large: Data) -> None:
    open_day(large).append([new(1)])
    large.put_speeds(1, [entry("theirs", 5), *large.entries(1)])

    assert times(large)[:2] == [1, 5]
    open_day(large).fold()
    assert [e["speedMs"] for e in large.entries(1)[:2]] == [1, 5]


def test_a_write_that_fails_half_way_leaves_the_journal_whole(
    large: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = open_day(large)
    file.append([new(1)])
    before = first_journal(large).read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exception, match="No space left on device"):
        file.append([new(2)])
    monkeypatch.undo()

    assert first_journal(large).read_bytes() == before


def test_a_journal_is_flushed_before_the_answer(large: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    file = open_day(large)
    file.append([new(1)])
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_size))

    file.append([new(2)])

    assert flushed == [first_journal(large).stat().st_size]


def test_a_new_journal_has_its_name_on_the_disk(large: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Any] = []
    monkeypatch.setattr(durable, "flush_folder", folders.append)

    open_day(large).append([new(1)])

    assert folders == [large.speeds]


def test_a_journal_that_never_rests_is_folded_when_it_is_long(
    large: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_JOURNAL_BYTES", 500)
    file = open_day(large)
    for number in range(10):
        file.append([new(number)])

    assert large.entries(1)[0]["llm"] == "gpt4"
    assert times(large)[:10] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]


async def test_a_journal_is_folded_when_nobody_records_and_when_the_server_ends(large: Data) -> None:
    run = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 7}
    async with connect(large.bridge()) as client:
        await client.call("record_speed", run)
        assert first_journal(large).exists()

    assert not first_journal(large).exists()
    assert large.entries(1)[0]["speedMs"] == 7


def test_answered_records_of_a_large_day_survive_a_kill_and_are_folded_by_the_next_server(
    large: Data,
) -> None:
    run = {"day": 1, "phase": 1, "llm_name": "gpt4"}
    with large.served(is_cut_short=True) as peer:
        peer.shake_hands()
        for number in range(1, 6):
            peer.request("tools/call", call("record_speed", {**run, "speed_ms": number}))
        peer.process.send_signal(KILL)
        peer.process.wait(SECONDS)

    assert first_journal(large).exists()
    assert times(large)[:5] == [5, 4, 3, 2, 1]
    with large.served() as peer:
        peer.shake_hands()
        until = time.monotonic() + PATIENCE
        while first_journal(large).exists():
            assert time.monotonic() < until
            time.sleep(0.01)
    assert [e["speedMs"] for e in large.entries(1)[:5]] == [5, 4, 3, 2, 1]


def test_a_reader_sees_a_whole_file_and_every_answered_record_while_journals_come_and_go(
    large: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_JOURNAL_BYTES", 400)
    file, is_over, problems = open_day(large), threading.Event(), []
    answered = [0]

    def read() -> None:
        while not is_over.is_set():
            expected = answered[0]
            found = times_of(large, "gpt4")
            json.loads(durable.read(large.speeds_file(1)))  # on Windows not while it is being replaced
            if found[::-1][:expected] != list(range(1, expected + 1)):
                problems.append((expected, found))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 25):
        file.append([new(number)])
        answered[0] = number
    is_over.set()
    reader.join()

    assert problems == []


def times_of(data: Data, llm: str) -> list[int]:
    found = read_day(str(data.speeds), 1)
    return [] if found is None else [one.time for one in found.all_entries if one.llm == llm]


def test_a_file_that_is_moved_away_does_not_take_the_journal_with_it(large: Data) -> None:
    file = open_day(large)
    file.append([new(1), new(2)])
    large.speeds_file(1).rename(large.folder / "archive.json")

    assert times(large) == [2, 1]
    assert file.append([new(3)])[0].figures.n == 3
    assert [e["speedMs"] for e in large.entries(1)] == [3, 2, 1]
    assert not first_journal(large).exists()
