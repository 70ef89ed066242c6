"""Records: every run of every day, read again only where something was written."""

from typing import Any

import pytest

from bridgehead.aoc.files import records as records_module
from bridgehead.aoc.files.entries import Group
from bridgehead.aoc.files.filters import RunFilter, Skipped
from bridgehead.aoc.files.history import PageCut
from bridgehead.aoc.files.records import Records
from bridgehead.runtime.errors import StorageError
from tests.aoc.data import Data, entry, new, open_day

GPT4 = Group("gpt4", 1, "solving")


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The days that were read whole."""
    days: list[int] = []
    read_day = records_module.read_day

    def counted(folder: str, day: int) -> records_module.DayRead | None:
        days.append(day)
        return read_day(folder, day)

    monkeypatch.setattr(records_module, "read_day", counted)
    return days


def times(records: Records, day: int = 1) -> dict[Group, list[int]]:
    found = records.runs(day, [])
    return {group: runs.ordered for group, runs in found[day].groups.items()} if found else {}


def test_runs_are_told_apart_by_model_phase_and_measure(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 3), entry("gpt4", 1), entry("gpt4", 7, 2), entry("o1", 9)])

    assert times(Records(str(data.speeds))) == {
        GPT4: [1, 3],
        Group("gpt4", 2, "solving"): [7],
        Group("o1", 1, "solving"): [9],
    }


def test_only_days_that_somebody_wrote_to_are_read_again(data: Data, decoded: list[int]) -> None:
    data.put_speeds(1, [entry("gpt4", 1)])
    data.put_speeds(2, [entry("gpt4", 2)])
    records = Records(str(data.speeds))
    first = records.runs(None, [])
    decoded.clear()

    data.put_speeds(2, [entry("gpt4", 5), entry("gpt4", 2)])
    second = records.runs(None, [])

    assert [day for day in decoded if day in {1, 2}] == [2]
    assert second[1].identity == first[1].identity
    assert second[2].identity != first[2].identity
    assert second[2].groups[GPT4].ordered == [2, 5]


def test_a_day_whose_file_is_gone_has_no_runs(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1)])
    records = Records(str(data.speeds))
    assert times(records) == {GPT4: [1]}

    data.speeds_file(1).unlink()

    assert (times(records), records.days()) == ({}, [])


def test_days_are_listed_in_their_order(data: Data) -> None:
    for day in (25, 3, 10):
        data.put_speeds(day, [entry("gpt4", 1)])

    assert Records(str(data.speeds)).days() == [3, 10, 25]


def test_a_corrupt_day_is_refused_where_it_is_named_and_else_skipped(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1)])
    data.put_speeds(3, b"{")
    records, skipped, skipped_entries = Records(str(data.speeds)), list[Skipped](), list[Skipped]()

    assert list(records.runs(None, skipped)) == list(records.entries([1, 3], skipped_entries)) == [1]
    assert [one.file for one in skipped] == [str(data.speeds_file(3))]
    assert skipped_entries == skipped
    with pytest.raises(StorageError, match=r"day03\.json"):
        records.runs(3, [])
    with pytest.raises(StorageError, match=r"day03\.json"):
        records.entries([3])


def test_entries_come_with_the_newest_first(large: Data) -> None:
    open_day(large).append([new(1), new(2)])

    found = Records(str(large.speeds)).entries([1, 2])

    assert list(found) == [1]
    assert [one.time for one in found[1][:3]] == [2, 1, 0]


# --- pages of single runs ----------------------------------------------------------------------------------


def page(records: Records, size: int, newer: int = 0, **wanted: Any) -> list[tuple[int, int]]:
    days = records.run_counts(None, [])
    total = sum(sum(of_day.counts.values()) for of_day in days.values())
    cut = PageCut(newer, size, total - newer - size)
    return [(day, one.time) for day, one in records.newest_runs(days, RunFilter(**wanted), cut)]


def moment(second: int) -> str:
    return f"2025-12-01T10:30:{second:02}.000Z"


def test_a_page_reads_the_lines_of_its_runs_and_no_file_again(data: Data, decoded: list[int]) -> None:
    for day in (1, 2):
        data.put_speeds(day, [entry("gpt4", 10 * day + n, 1, moment(10 * n + day)) for n in (3, 2, 1)])
    records = Records(str(data.speeds))
    first = page(records, 3)
    decoded.clear()

    assert first == page(records, 3) == [(2, 23), (1, 13), (2, 22)]
    assert page(records, 3, newer=3) == [(1, 12), (2, 21), (1, 11)]
    assert [day for day in decoded if day in {1, 2}] == []


def test_a_page_is_of_the_runs_that_were_counted_also_if_the_file_is_replaced_meanwhile(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1)])
    records = Records(str(data.speeds))
    counted = records.run_counts(None, [])
    data.put_speeds(1, [entry("somebody else", 2, 1, moment(59)), entry("gpt4", 1)])

    assert [run.time for _, run in records.newest_runs(counted, RunFilter(), PageCut(0, 1, 0))] == [1]
    assert page(records, 2) == [(1, 2), (1, 1)]


def test_days_beyond_the_limit_of_memory_are_read_again(
    data: Data, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records_module, "MAX_KEPT", 3)
    for day in (1, 2):
        data.put_speeds(day, [entry("gpt4", day), entry("gpt4", 5)])
    records = Records(str(data.speeds))

    assert page(records, 4) == page(records, 4)
    assert [day for day in decoded if day in {1, 2}] == [1, 2, 2]


def test_lines_that_are_not_in_the_order_of_time_are_listed_by_time(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", n, 1, moment(n % 4)) for n in range(8)])

    assert [time for _, time in page(Records(str(data.speeds)), 8)] == [3, 7, 2, 6, 1, 5, 0, 4]


def test_runs_without_a_fitting_seal_are_claimed_on_a_page_and_where_they_are_counted(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1, grade="verified", seal="made up")])
    records = Records(str(data.speeds), data.seals())
    days = records.run_counts(1, [])

    assert days[1].counts == {GPT4: 1}
    for _ in range(2):  # from what was just read, and from the line alone
        ((_, run),) = records.newest_runs(days, RunFilter(grade="claimed"), PageCut(0, 1, 0))
        assert run.grade == "claimed"
