"""Day file: what is on the disk at every moment, whoever writes, in small files and in large ones."""

import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.files.entries import Group
from tests.aoc.data import CONTRACT, Data, entry, new, open_day, record, refused_record
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


# --- the journal of a large file ---------------------------------------------------------------------------


def test_a_record_of_a_large_day_can_be_withdrawn_too(large: Data) -> None:
    file = open_day(large)
    (recorded,) = file.append([new(1)])

    file.withdraw(Group("gpt4", 1, "solving"), recorded.entry.timestamp)

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


async def test_a_folder_that_was_taken_away_is_made_again(data: Data) -> None:
    async with connect(data.bridge()) as client:
        await client.call("record_speed", RUN)
        for path in data.speeds.iterdir():
            path.unlink()
        data.speeds.rmdir()
        await client.call("record_speed", RUN)

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


async def test_what_killed_writers_left_is_swept(data: Data) -> None:
    data.speeds.mkdir()
    stray = data.speeds / ".bridgehead-one.tmp"
    fresh = data.speeds / ".bridgehead-two.tmp"
    for path in (stray, fresh):
        path.write_bytes(b"half")
    an_hour_ago = time.time() - 3600
    os.utime(stray, (an_hour_ago, an_hour_ago))

    await record(data, RUN)

    assert (stray.exists(), fresh.exists()) == (False, True)


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
