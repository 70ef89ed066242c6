"""Snapshot: a whole file as it is at one moment, whatever stands in its place."""

import os
from pathlib import Path

import pytest

from bridgehead.aoc.files.layout import identify
from bridgehead.aoc.files.snapshot import read_snapshot
from bridgehead.runtime.errors import StorageError

MOST = 1024 * 1024


def test_a_file_is_read_whole_and_known_again(tmp_path: Path) -> None:
    path = tmp_path / "day01.json"
    path.write_bytes(b"x" * 200_000)

    found = read_snapshot(str(path), MOST)

    assert found is not None
    assert found.data == path.read_bytes()
    assert found.identity == identify(str(path))


def test_a_file_is_read_from_an_offset_on(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")

    found = [read_snapshot(str(path), MOST, start) for start in (0, 7, 10, 99)]

    assert [one and one.data for one in found] == [b"0123456789", b"789", b"", b""]


def test_where_there_is_no_file_there_is_nothing_to_know(tmp_path: Path) -> None:
    path = str(tmp_path / "day01.json")

    assert (read_snapshot(path, MOST), identify(path)) == (None, None)


def test_a_file_of_exactly_the_limit_is_read_and_a_larger_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "day01.json"
    path.write_bytes(b"x" * 2048)

    assert read_snapshot(str(path), 2048) is not None
    with pytest.raises(StorageError, match="it has 2,048 bytes, and the limit is 2,047"):
        read_snapshot(str(path), 2047)


def test_a_folder_in_the_place_of_a_file_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "day01.json"
    folder.mkdir()

    with pytest.raises(StorageError) as refusal:
        read_snapshot(str(folder), MOST)

    assert str(folder) in refusal.value.message
    assert identify(str(folder)) is None


def test_a_pipe_in_the_place_of_a_file_makes_nobody_wait(tmp_path: Path) -> None:
    pipe = tmp_path / "day01.json"
    os.mkfifo(pipe)

    with pytest.raises(StorageError, match="it is not a file"):
        read_snapshot(str(pipe), MOST)


def test_what_a_file_gains_while_it_is_read_is_read_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "day01.json"
    path.write_bytes(b"one")
    read = os.read

    def grow_after(descriptor: int, size: int) -> bytes:
        data = read(descriptor, size)
        if data == b"one":
            with path.open("ab") as file:
                file.write(b" and two")
        return data

    monkeypatch.setattr(os, "read", grow_after)
    found = read_snapshot(str(path), MOST)

    assert found is not None
    assert found.data == b"one and two"
    assert found.identity != identify(str(path))
