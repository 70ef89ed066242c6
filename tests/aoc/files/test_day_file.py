"""Day file: what is on the disk at every moment, whoever writes, in small files and in large ones."""

import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.files import day_document, day_file, records
from bridgehead.aoc.files.day_file import DayFile, describe_run, take_run
from bridgehead.aoc.files.entries import (
    CLAIMED,
    MEASURED,
    VERIFIED,
    Details,
    Grade,
    Group,
    NewEntry,
    Wanted,
    id_of,
)
from bridgehead.aoc.files.figures import Runs
from bridgehead.aoc.files.locking import FolderLock
from bridgehead.runtime import durable
from bridgehead.runtime.errors import InvalidArgument, NotFound, StorageError
from bridgehead.runtime.timing import SystemClock
from tests.aoc.data import CONTRACT, SECONDS, Data, entry, new, open_day, record, refused_record, times
from tests.support.checked import connect
from tests.support.messages import call
from tests.support.posix import is_root, resource
from tests.support.stdio_peer import Peer

# --- locks -------------------------------------------------------------------------------------------------


def test_the_mode_and_the_group_of_a_file_stay_whatever_the_umask(data: Data) -> None:
    data.put_speeds(1, [])
    data.speeds_file(1).chmod(0o664)
    if is_root:
        os.chown(data.speeds_file(1), -1, 4242)
    group = data.speeds_file(1).stat().st_gid
    before = os.umask(0o077)
    try:
        open_day(data).append([new(1)])
    finally:
        os.umask(before)

    status = data.speeds_file(1).stat()
    assert (stat.S_IMODE(status.st_mode), status.st_gid) == (0o664, group)


async def test_the_error_names_what_could_not_be_opened(data: Data) -> None:
    data.speeds.write_text("a file where a folder should be")

    async with connect(data.bridge(), revision=CONTRACT) as client:
        run = {"day": 1, "phase": 1, "llm_name": "a", "speed_ms": 1}
        error = await client.error("tools/call", {"name": "record_speed", "arguments": run})

    assert error["message"].startswith(f"{data.speeds_file(1)} cannot be written: ")
    assert f"({data.speeds})" in error["message"]


# --- large days --------------------------------------------------------------------------------------------


def test_a_record_of_a_large_day_can_be_withdrawn_too(large: Data) -> None:
    file = open_day(large)
    (recorded,) = file.append([new(1)])

    file.withdraw(Wanted(id_of(1, recorded.entry)))

    assert "withdrawn" in large.entries(1)[0]
    assert file.append([new(2)])[0].figures.n == 1


RUN = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1250}


def answer(peer: Peer) -> Any:
    return peer.request("tools/call", call("record_speed", RUN))


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


async def test_a_folder_that_was_taken_away_is_not_made_again_until_somebody_makes_it(data: Data) -> None:
    async with connect(data.bridge()) as client:
        await client.call("record_speed", RUN)
        data.speeds.rename(data.folder / "away")
        refused = await client.call("record_speed", RUN)
        assert not data.speeds.exists()
        data.speeds.mkdir()
        await client.call("record_speed", RUN)

    assert f"{data.speeds} is no longer there" in refused["content"][0]["text"]
    assert len(data.entries(1)) == 1


async def test_a_link_stays_a_link_and_a_mode_stays_as_it_is(data: Data, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    data.speeds.mkdir()
    elsewhere.write_bytes(b'{"day": 1, "entries": []}')
    elsewhere.chmod(0o640)
    data.speeds_file(1).symlink_to(elsewhere)

    await record(data, RUN)

    assert data.speeds_file(1).is_symlink()
    assert len(data.entries(1)) == 1
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o640


async def test_what_killed_writers_left_is_swept_by_the_next_writer_however_young_it_is(data: Data) -> None:
    data.speeds.mkdir()
    strays = [data.speeds / f".bridgehead-{number}.tmp" for number in range(12)]
    async with connect(data.bridge()) as client:
        for _ in range(2):
            for path in strays:
                path.write_bytes(b"half")
            data.put_speeds(1, [entry("other", 5)])  # what another writer finished
            await client.call("record_speed", RUN)
            assert not [path for path in strays if path.exists()]


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


@pytest.mark.skipif(is_root, reason="root may write everywhere")
async def test_a_folder_that_cannot_be_written_to_is_a_clear_error(data: Data) -> None:
    before = data.put_speeds(1, [entry("gpt4", 1)])
    data.speeds.chmod(0o555)
    try:
        error = await refused_record(data, RUN)
    finally:
        data.speeds.chmod(0o755)

    assert (error["code"], "Nothing was recorded" in error["message"]) == (-1, True)
    assert data.speeds_file(1).read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /sys")
async def test_a_file_system_that_cannot_be_written_to_is_a_clear_error(data: Data) -> None:
    data.speeds.symlink_to("/sys")

    error = await refused_record(data, RUN)

    assert (error["code"], "Nothing was recorded" in error["message"]) == (-1, True)
    assert str(data.speeds_file(1)) in error["message"]


def test_an_attempt_is_recorded_once_by_whichever_process(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 7)])
    run = NewEntry("gpt4", 1, 5, "t", grade="measured", details=Details(attempt="a1"))

    (first,) = open_day(data).append([run])
    (again, other) = open_day(data).append([run, new(9)])
    (last,) = open_day(data).append([run])

    assert times(data) == [9, 5, 7]
    assert [made.figures.n for made in (first, again, other, last)] == [2, 2, 3, 3]


# --- what a record comes to --------------------------------------------------------------------------------


def test_a_record_tells_the_figures_of_its_phase_and_the_average_of_both() -> None:
    groups: dict[Group, Runs] = {}
    told = [
        take_run(groups, NewEntry("gpt4", phase, time, "now", grade=grade))
        for phase, time, grade in ((1, 100, CLAIMED), (2, 300, CLAIMED), (1, 101, MEASURED), (2, 1, VERIFIED))
    ]

    assert [(one.figures.n, one.figures.best, one.average) for one in told] == [
        (1, 100, 100),
        (1, 300, 200),
        (2, 100, 167),
        (2, 1, 125),
    ]
    assert {(group.phase, group.grade): runs.claimed for group, runs in groups.items()} == {
        (1, "claimed"): 1,
        (2, "claimed"): 1,
        (1, "measured"): 0,
        (2, "verified"): 0,
    }


def test_a_record_that_was_written_before_is_told_among_the_runs_that_count() -> None:
    run = NewEntry("gpt4", 1, 100, "now")
    alone = describe_run({}, run)
    among = describe_run({run.group: Runs([100, 300])}, run)

    assert (alone.figures.n, alone.average) == (1, 100)
    assert (among.figures.n, among.average) == (2, 200)


# --- what is read, and when --------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each time that a day is read as a whole."""
    found: list[int] = []

    def read_day(folder: str, day: int) -> Any:
        found.append(day)
        return records.read_day(folder, day)

    monkeypatch.setattr(day_file, "read_day", read_day)
    return found


def test_a_file_that_nobody_else_writes_is_read_once(data: Data, reads: list[int]) -> None:
    data.put_speeds(1, [entry("gpt4", 1)])
    file = open_day(data)
    counts = [file.append([new(number)])[0].figures.n for number in range(3)]

    assert (counts, reads) == ([2, 3, 4], [1])


def test_records_that_are_written_together_stand_from_the_newest_to_the_oldest(data: Data) -> None:
    open_day(data).append([new(1), new(2)])

    assert [e["speedMs"] for e in data.entries(1)] == [2, 1]


def test_what_killed_writers_left_is_not_looked_for_while_nobody_else_writes(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[Path] = []
    monkeypatch.setattr(durable, "sweep", lambda folder, *_, **__: swept.append(folder))
    file = open_day(data)
    for number in range(3):
        file.append([new(number)])

    assert swept == [data.speeds]


# --- limits, rights, descriptors ---------------------------------------------------------------------------


def test_a_file_may_be_as_large_as_the_limit(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    open_day(data).append([new(1)])
    size = data.speeds_file(1).stat().st_size
    data.speeds_file(1).unlink()

    monkeypatch.setattr(day_document, "MAX_BYTES", size - 1)
    with pytest.raises(StorageError, match="is full"):
        open_day(data).append([new(1)])
    assert not data.speeds_file(1).exists()
    monkeypatch.setattr(day_document, "MAX_BYTES", size)
    open_day(data).append([new(1)])


@pytest.mark.parametrize(
    ("folder", "umask", "mode"), [(0o775, 0o077, 0o660), (0o755, 0o077, 0o600), (0o755, 0o022, 0o644)]
)
def test_a_new_file_is_for_the_group_of_a_folder_that_it_may_write_to(
    data: Data, folder: int, umask: int, mode: int
) -> None:
    data.speeds.mkdir()
    data.speeds.chmod(folder)
    before = os.umask(umask)
    try:
        file = open_day(data)
        for number in (1, 2):
            file.append([new(number)])
    finally:
        os.umask(before)

    assert stat.S_IMODE(data.speeds_file(1).stat().st_mode) == mode


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (OSError(13, "Permission denied", "{folder}/.bridgehead-1.tmp"), "Permission denied ({folder})"),
        (OSError(13, "Permission denied", "{folder}/day01.json"), "Permission denied"),
        (OSError(13, "Permission denied", "/elsewhere/lock"), "Permission denied (/elsewhere/lock)"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("something odd"), "something odd"),
    ],
)
def test_the_error_says_what_is_in_the_way(
    data: Data, monkeypatch: pytest.MonkeyPatch, failure: OSError, told: str
) -> None:
    if failure.filename:
        failure.filename = failure.filename.format(folder=data.speeds).replace("/", os.sep)

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(durable, "replace", fail)
    with pytest.raises(StorageError) as problem:
        open_day(data).append([new(1)])

    reason = told.format(folder=data.speeds).replace("/", os.sep)
    assert str(problem.value).startswith(f"{data.speeds_file(1)} cannot be written: {reason}. Nothing was")


# --- taking back -------------------------------------------------------------------------------------------

GPT4 = Wanted(None, "gpt4", 1, "t1")


def test_only_the_record_that_is_meant_is_taken_back(data: Data) -> None:
    data.put_speeds(
        1,
        [
            entry("gpt4", 1, timestamp="t1", withdrawn="earlier"),
            entry("gpt4", 2, phase=2, timestamp="t1"),
            entry("claude", 3, timestamp="t1"),
            entry("gpt4", 4, timestamp="t2"),
            entry("gpt4", 5, timestamp="t1"),
            entry("gpt4", 6, timestamp="t1"),
        ],
    )
    file = open_day(data)
    with pytest.raises(InvalidArgument, match=r"2 records of gpt4 in phase 1 at t1.*5 ms.*6 ms") as several:
        file.withdraw(GPT4)
    named = re.findall(r"(\w{12}) \(", str(several.value))
    assert [file.withdraw(Wanted(record)).time for record in named] == [5, 6]

    assert [e["speedMs"] for e in data.entries(1) if "withdrawn" in e] == [1, 5, 6]
    with pytest.raises(NotFound, match="no record of gpt4 in phase 1 at t1"):
        file.withdraw(GPT4)
    with pytest.raises(NotFound, match=f"no record with the id {named[0]}"):
        file.withdraw(Wanted(named[0]))


def test_of_two_equal_records_one_is_taken_back_at_a_time(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 5, timestamp="t1"), entry("gpt4", 5, timestamp="t1")])
    file = open_day(data)

    file.withdraw(GPT4)
    assert [("withdrawn" in e) for e in data.entries(1)] == [True, False]
    file.withdraw(GPT4)
    assert [("withdrawn" in e) for e in data.entries(1)] == [True, True]


def test_a_day_without_records_has_none_to_take_back(data: Data) -> None:
    data.speeds.mkdir()
    with pytest.raises(NotFound, match="Day 1 has no record"):
        open_day(data).withdraw(GPT4)


def test_a_withdrawal_that_cannot_be_written_is_told(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    data.put_speeds(1, [entry("gpt4", 1, timestamp="t1")])
    file = open_day(data)
    file.append([new(2)])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "replace", full)
    with pytest.raises(StorageError, match="No space left on device"):
        file.withdraw(GPT4)


# --- grades ------------------------------------------------------------------------------------------------


def graded(time: int, grade: Grade, attempt: str | None = None) -> NewEntry:
    return NewEntry("gpt4", 1, time, f"t{time}", grade=grade, details=Details(attempt=attempt))


@pytest.fixture(params=["a small day", "a large day"])
def any_size(request: pytest.FixtureRequest, data: Data) -> Data:
    """A day with a few records, and one with thousands."""
    return data if request.param == "a small day" else request.getfixturevalue("large")


def test_only_a_record_above_claimed_is_sealed(any_size: Data) -> None:
    file = DayFile(FolderLock(str(any_size.speeds), SECONDS), 1, SystemClock(), seals=any_size.seals())
    file.append([graded(1, CLAIMED), graded(2, MEASURED), graded(3, VERIFIED)])

    assert ["seal" in record for record in any_size.entries(1)[:3]] == [True, True, False]


def test_an_attempt_that_is_handed_in_twice_at_once_is_recorded_once(any_size: Data) -> None:
    file = DayFile(FolderLock(str(any_size.speeds), SECONDS), 1, SystemClock(), seals=any_size.seals())
    file.append([graded(7001, MEASURED, "x"), graded(7002, MEASURED, "x"), graded(7003, MEASURED, "y")])

    assert times(any_size)[:2] == [7003, 7001]
    assert 7002 not in times(any_size)
