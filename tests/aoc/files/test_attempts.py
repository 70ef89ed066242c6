"""Attempts: each step is on the disk, a half line spoils nothing, and what nobody finished counts in time."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.files import attempts as attempts_module
from bridgehead.aoc.files.attempts import (
    MAX_TRIES,
    OPEN_SECONDS,
    AttemptOutcome,
    Attempts,
    AttemptStep,
    Stopwatch,
    find_wrong_lines,
)
from bridgehead.aoc.files.entries import CLAIMED, MEASURED
from bridgehead.aoc.files.filters import Skipped
from bridgehead.aoc.files.seals import Seals
from bridgehead.runtime.errors import NotFound, StorageError
from tests.aoc.data import SECONDS
from tests.support.clock import START, Clock

NOW = START


def step(attempt: str, outcome: AttemptOutcome, llm: str = "gpt4", **more: Any) -> AttemptStep:
    return AttemptStep(attempt, outcome, llm, more.pop("phase", 1), "", more.pop("seconds", NOW), **more)


@pytest.fixture
def attempts(tmp_path: Path) -> Attempts:
    return Attempts(str(tmp_path / "attempts"), SECONDS, Seals(lambda: tmp_path / "key"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "attempts" / "day01.jsonl"


# --- on the disk -------------------------------------------------------------------------------------------


def test_steps_come_back_in_their_order_and_one_attempt_is_found_on_its_day(attempts: Attempts) -> None:
    attempts.append(1, [step("a", "started"), step("b", "started")])
    attempts.append(7, [step("c", "started"), step("c", "wrong", time=5)])

    assert [one.attempt for one in attempts.steps(1)] == ["a", "b"]
    assert attempts.find("c") == (7, attempts.steps(7))
    assert attempts.find("d") == (0, [])


def test_a_step_is_flushed_before_anybody_is_told(
    attempts: Attempts, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))

    attempts.append(1, [step("a", "started")])

    assert file.stat().st_size in sizes


@pytest.mark.parametrize("torn", [b'{"attempt": "x", "outc', b"\xff\xfe", b"[]\n{}\n"])
def test_what_a_killed_writer_left_spoils_no_other_step(attempts: Attempts, file: Path, torn: bytes) -> None:
    attempts.append(1, [step("a", "started")])
    with file.open("ab") as out:
        out.write(torn)

    attempts.append(1, [step("a", "solved")])

    assert [one.outcome for one in attempts.steps(1)] == ["started", "solved"]


def test_wrong_lines_are_numbered_but_not_the_last_which_may_be_half_written(
    attempts: Attempts, file: Path
) -> None:
    attempts.append(1, [step("a", "started")])
    with file.open("ab") as out:
        out.write(b"nonsense\n\n{}\nhalf")

    assert find_wrong_lines(str(file)) == [2, 4]
    assert find_wrong_lines(str(file.with_name("day02.jsonl"))) == []


def test_a_day_is_read_again_only_where_it_was_written_to(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts.append(1, [step("a", "started")])
    before = attempts.identity()
    first = attempts.steps(1)
    assert attempts.steps(1) is first
    assert attempts.identity() == before

    Attempts(str(tmp_path / "attempts"), SECONDS).append(1, [step("a", "solved")])

    assert len(attempts.steps(1)) == 2
    assert attempts.identity() != before


def test_a_folder_that_cannot_be_written_to_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "attempts").write_text("in the way")

    with pytest.raises(StorageError, match="cannot be written"):
        Attempts(str(tmp_path / "attempts"), SECONDS).append(1, [step("a", "started")])


# --- counted -----------------------------------------------------------------------------------------------


def test_the_last_step_of_an_attempt_says_what_became_of_it(attempts: Attempts) -> None:
    start, end = step("a", "started", grade="measured"), step("a", "solved", tokens=10)
    attempts.append(1, [start, step("a", "wrong"), end])
    attempts.append(2, [step("b", "failed"), step("d", "started")])

    ends = {found.step.attempt: found for found in attempts.ends(None, [])}

    assert [(e.day, e.step.outcome, e.wrong) for e in ends.values()] == [
        (1, "solved", 1),
        (2, "failed", 0),
        (2, "started", 0),
    ]
    assert [found.step.attempt for found in attempts.ends(2, [])] == ["b", "d"]
    assert ends["a"].step.tokens == 10


def test_an_attempt_keeps_the_grade_that_it_could_reach_when_it_began(tmp_path: Path) -> None:
    sealed = Attempts(str(tmp_path), SECONDS, Seals(lambda: tmp_path / "key"))
    sealed.append(1, [step("a", "started", grade="measured")])
    sealed.append(1, [step("a", "failed", time=5)])

    (end,) = sealed.ends(1, [])

    assert (end.started.grade, end.step.grade) == ("measured", "claimed")


def test_an_open_attempt_is_over_only_after_a_day(attempts: Attempts) -> None:
    attempts.append(1, [step("a", "started"), step("a", "wrong")])
    (end,) = attempts.ends(1, [])

    assert not end.is_over(NOW + OPEN_SECONDS)
    assert end.is_over(NOW + OPEN_SECONDS + 1)


def test_a_file_that_is_too_large_fails_its_day_and_no_other(
    attempts: Attempts, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts.append(1, [step("a", "started")])
    attempts.append(2, [step("b", "started")])
    monkeypatch.setattr(attempts_module, "MAX_BYTES", file.stat().st_size - 1)
    file.with_name("day02.jsonl").write_bytes(b"")
    attempts.append(1, [step("a", "failed")])
    skipped: list[Skipped] = []

    assert attempts.ends(None, skipped) == []
    assert [one.file for one in skipped] == [str(file)]
    with pytest.raises(StorageError, match="day01"):
        attempts.ends(1, [])
    with pytest.raises(StorageError, match="day01"):
        attempts.find("a")


def test_no_attempt_starts_in_a_full_file_but_those_that_began_can_end(
    attempts: Attempts, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts.append(1, [step("a", "started")])
    monkeypatch.setattr(attempts_module, "MAX_BYTES", 1000)
    monkeypatch.setattr(attempts_module, "ROOM_BYTES", 1000 - file.stat().st_size + 1)

    with pytest.raises(StorageError, match="No attempt was started"):
        attempts.append(1, [step("b", "started")])
    assert len(attempts.advance(1, step("a", "solved"))) == 2


def test_of_a_file_that_grew_only_the_new_lines_are_read(
    attempts: Attempts, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts.append(1, [step(f"a{number}", "failed") for number in range(50)])
    attempts.steps(1)
    read: list[int] = []
    read_file = os.read

    def noted(descriptor: int, size: int) -> bytes:
        data = read_file(descriptor, size)
        read.append(len(data))
        return data

    with file.open("ab") as out:
        out.write(
            b'{"attempt":"b","outcome":"failed","llm":"x","phase":1,"timestamp":"","seconds":1.0}\n{"att'
        )
    monkeypatch.setattr(os, "read", noted)

    assert [one.attempt for one in attempts.steps(1)][-2:] == ["a49", "b"]
    assert sum(read) < 500 < file.stat().st_size
    attempts.append(1, [step("c", "failed")])
    assert [one.attempt for one in attempts.steps(1)][-3:] == ["a49", "b", "c"]


def test_another_file_in_its_place_is_read_anew(attempts: Attempts, file: Path) -> None:
    attempts.append(1, [step("a", "failed")])
    attempts.steps(1)
    line = file.read_bytes()
    file.write_bytes(line.replace(b'"a"', b'"x"') + line.replace(b'"a"', b'"y"'))

    assert [one.attempt for one in attempts.steps(1)] == ["x", "y"]


def test_reading_a_puzzle_is_never_an_attempt_and_is_stored_once(attempts: Attempts) -> None:
    for _ in range(2):
        Stopwatch(attempts, Clock()).record_handout(1, [1, 2], "token:ann")

    assert [(one.caller, one.phase) for one in attempts.steps(1)] == [("token:ann", 1), ("token:ann", 2)]
    assert not any(end.is_over(NOW + OPEN_SECONDS + 1) for end in attempts.ends(1, []))


# --- timed -------------------------------------------------------------------------------------------------


def test_the_time_of_an_attempt_of_this_process_does_not_depend_on_the_wall_clock(attempts: Attempts) -> None:
    clock = Clock()
    watch = Stopwatch(attempts, clock)
    started = watch.start(1, 1, "gpt4")
    clock.set(NOW + 10_000)

    found = watch.look_up(started.attempt)

    assert (found.day, found.started, found.end) == (1, started, None)
    assert 1 <= found.milliseconds < 10_000_000


def test_the_time_of_an_attempt_of_another_process_is_that_since_its_first_step(attempts: Attempts) -> None:
    clock = Clock()
    started = Stopwatch(attempts, clock).start(1, 1, "gpt4")
    clock.advance(90)

    assert Stopwatch(attempts, clock).look_up(started.attempt).milliseconds == 90_000


def test_the_first_end_of_an_attempt_stands(attempts: Attempts) -> None:
    watch = Stopwatch(attempts, Clock())
    began = watch.look_up(watch.start(1, 1, "gpt4", MEASURED).attempt)
    wrong = watch.hand_in(began, "too_low")
    right = watch.hand_in(wrong._replace(milliseconds=10), "right", tokens=3)
    later = [watch.hand_in(began, verdict) for verdict in ("right", "wrong", None)]

    assert (wrong.end, right.end and right.end.time) == (None, 10)
    assert {(one.end.time, one.end.tokens, one.end.grade) for one in later if one.end} == {
        (10, 3, "measured")
    }
    assert (later[0].tries, later[0].wrong) == (2, 1)
    assert [one.outcome for one in attempts.steps(1)] == ["started", "wrong", "solved"]
    with pytest.raises(NotFound, match="There is no attempt 'other'"):
        watch.look_up("other")


def test_the_last_wrong_try_ends_an_attempt(attempts: Attempts) -> None:
    watch = Stopwatch(attempts, Clock())
    found = watch.look_up(watch.start(1, 1, "gpt4", MEASURED).attempt)
    with ThreadPoolExecutor(8) as threads:
        ended = list(threads.map(lambda _: watch.hand_in(found, "too_low"), range(40)))

    assert [one.outcome for one in attempts.steps(1)] == ["started", *["wrong"] * MAX_TRIES, "failed"]
    assert ended[-1].end is not None
    assert {(one.end.outcome, one.end.grade) for one in ended if one.end} == {("failed", "claimed")}


def test_only_a_right_answer_has_the_grade_that_the_attempt_could_reach(attempts: Attempts) -> None:
    watch = Stopwatch(attempts, Clock())
    grades = []
    for grade, verdict in ((MEASURED, "right"), (CLAIMED, "right"), (MEASURED, "unknown"), (MEASURED, None)):
        found = watch.look_up(watch.start(1, 1, "gpt4", grade).attempt)
        end = watch.hand_in(found, verdict).end  # type: ignore[arg-type]
        grades.append(end and end.grade)

    assert grades == ["measured", "claimed", "claimed", "claimed"]


def test_a_step_that_was_edited_is_claimed(tmp_path: Path) -> None:
    seals = Seals(lambda: tmp_path / "key")
    folder = str(tmp_path / "attempts")
    Attempts(folder, SECONDS, seals).append(1, [step("a", "started", grade=MEASURED), step("b", "started")])
    file = tmp_path / "attempts" / "day01.jsonl"

    def grades(reader: Seals | None = seals) -> list[str]:
        return [one.grade for one in Attempts(folder, SECONDS, reader).steps(1)]

    assert grades() == ["measured", "claimed"]
    assert grades(None) == ["claimed", "claimed"]
    file.write_bytes(file.read_bytes().replace(b'"seconds":18', b'"seconds":19'))
    assert grades() == ["claimed", "claimed"]


def test_of_very_many_running_attempts_the_timestamps_count(
    attempts: Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts_module, "MAX_RUNNING", 2)
    clock = Clock()
    watch = Stopwatch(attempts, clock)
    started = [watch.start(1, 1, "gpt4") for _ in range(3)]
    clock.advance(60)

    forgotten, kept = (watch.look_up(one.attempt).milliseconds for one in (started[0], started[2]))

    assert forgotten == 60_000
    assert kept < 60_000
