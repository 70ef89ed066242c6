"""Seals: only a grade that a server of ours assigned is believed."""

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.files.entries import GRADES, Details, NewEntry
from bridgehead.aoc.files.records import Records
from bridgehead.aoc.files.seals import KEY_BYTES, Seals
from bridgehead.runtime.errors import StorageError
from tests.aoc.data import Data, put_graded

MEASURED = NewEntry("gpt4", 1, 1250, "t", "solving", "measured", Details(tries=1, cost_usd=0.1))


def grades(data: Data, seals: Seals | None = None) -> list[str]:
    return [entry.grade for entry in Records(str(data.speeds), seals or data.seals()).entries([1])[1]]


@pytest.mark.parametrize("grade", GRADES)
def test_a_grade_that_a_server_assigned_is_read_again(data: Data, grade: Any) -> None:
    put_graded(data, NewEntry("gpt4", 1, 1250, "t", grade=grade), MEASURED)

    assert grades(data) == ["measured", grade]


@pytest.mark.parametrize(
    "change",
    [
        {"speedMs": 3},
        {"llm": "another"},
        {"phase": 2},
        {"grade": "verified"},
        {"timestamp": "u"},
        {"measure": "execution"},
        {"details": {"tries": 1, "cost_usd": 0.0}},
        {"seal": "0" * 32},
        {"seal": 7},
        {"seal": None},
    ],
)
def test_a_record_that_was_edited_is_claimed(data: Data, change: dict[str, Any]) -> None:
    put_graded(data, MEASURED)
    (written,) = data.entries(1)
    data.put_speeds(1, [{**written, **change}])

    assert grades(data) == ["claimed"]


def test_a_record_of_another_day_or_a_second_copy_of_a_line_is_claimed(data: Data) -> None:
    put_graded(data, MEASURED, day=2)
    (written,) = data.entries(2)
    assert grades_of_day(data, 2) == ["measured"]

    data.put_speeds(1, [written])
    data.put_speeds(2, [written, written])

    assert grades(data) == ["claimed"]
    assert grades_of_day(data, 2) == ["measured", "claimed"]


def grades_of_day(data: Data, day: int) -> list[str]:
    return [entry.grade for entry in Records(str(data.speeds), data.seals()).entries([day])[day]]


def test_a_grade_written_by_hand_is_claimed(data: Data) -> None:
    data.put_speeds(1, [{"llm": "a", "phase": 1, "speedMs": 3, "timestamp": "t", "grade": "verified"}])

    assert grades(data) == ["claimed"]


def with_another_key(folder: Path) -> Seals:
    seals = Seals(lambda: folder / "another.key")
    seals.sign(1)
    return seals


@pytest.mark.parametrize(
    "other", [lambda _: Seals(), lambda folder: Seals(lambda: folder / "none"), with_another_key]
)
def test_a_server_with_another_key_or_none_believes_nothing(
    data: Data, tmp_path: Path, other: Callable[[Path], Seals]
) -> None:
    put_graded(data, MEASURED)

    assert grades(data, other(tmp_path)) == ["claimed"]
    assert grades(data) == ["measured"]


def test_a_record_in_another_layout_keeps_its_grade(data: Data) -> None:
    put_graded(data, MEASURED)
    (written,) = data.entries(1)
    written["speed_ms"] = written.pop("speedMs")
    data.put_speeds(1, json.dumps({"entries": [written], "day": 1}, indent=8).encode())

    assert grades(data) == ["measured"]


def test_processes_that_need_a_key_at_the_same_moment_get_one(tmp_path: Path) -> None:
    path = tmp_path / "grade.key"
    with ThreadPoolExecutor(8) as threads:
        signed = list(threads.map(lambda _: Seals(lambda: path).sign(1, "x"), range(8)))

    assert len(set(signed)) == 1
    assert path.stat().st_size == KEY_BYTES
    assert [file.name for file in tmp_path.iterdir()] == ["grade.key"]
    if sys.platform != "win32":
        assert path.stat().st_mode & 0o077 == 0


def test_a_sealed_line_of_another_year_is_claimed(data: Data) -> None:
    put_graded(data, MEASURED)

    assert grades(data, data.seals(2024)) == ["claimed"]


def test_a_key_that_is_empty_or_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "grade.key"
    for short in (b"", b"fifteen letters"):
        path.write_bytes(short)
        with pytest.raises(StorageError, match="can be guessed"):
            Seals(lambda: path).sign(1)
        with pytest.raises(StorageError, match="can be guessed"):
            Seals(lambda: path).fits("seal", 1)


def test_a_key_that_cannot_be_read_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "grade.key").mkdir()

    with pytest.raises(StorageError, match="AOC_GRADE_KEY_FILE"):
        Seals(lambda: tmp_path / "grade.key").sign(1)
    assert [file.name for file in tmp_path.iterdir()] == ["grade.key"]
