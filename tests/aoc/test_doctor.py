"""Doctor: `bridgehead aoc check` finds every problem, with its file, its line and what to do."""

import asyncio
from pathlib import Path

from bridgehead.aoc.doctor import examine
from bridgehead.commands import db
from tests.aoc.data import Data, entry, typed


def test_check_finds_nothing_wrong_with_good_files(filled: Data) -> None:
    filled.puzzle(1, "one", "two")
    (filled.folder / "aliases.json").write_text('{"fast": ["quick"]}')
    (filled.folder / "instructions" / "README.md").write_text("not one of ours")

    done = typed(filled, "check")

    assert (done.returncode, done.stdout) == (0, "4 files read, no problems\n")


def test_check_needs_no_folders(tmp_path: Path) -> None:
    data = Data(tmp_path)
    data.instructions.rmdir()

    assert typed(data, "check").stdout == "0 files read, no problems\n"


def test_check_lists_every_problem_with_its_file_and_place(data: Data) -> None:
    data.puzzle(1, b"\xff", "two")
    (data.instructions / "Day03_phase2.md").write_text("alone")
    (data.instructions / "Day4_phase1.md").write_text("short number")
    (data.instructions / "day05.json").write_text("{")
    (data.instructions / "Day06_phase1.md").mkdir()
    (data.folder / "aliases.json").write_text("[]")
    good = entry("a", 1)
    data.put_speeds(
        1,
        [
            {**good, "phase": 3},
            good,
            {**good, "timestamp": "yesterday"},
            {"llm": "a", "phase": 1, "timestamp": ""},
            {**good, "llm": "a\nb"},
        ],
    )
    data.put_speeds(2, {"day": 3, "entries": []})
    data.put_speeds(3, b'{"day": 3, "entries": [')
    (data.speeds / "day26.json").write_text("{}")
    data.speeds_file(4).mkdir()

    done = typed(data, "check")

    assert done.returncode == 1
    lines = done.stdout.replace("\\", "/").splitlines()
    for name, place in (
        ("Day01_phase1.md", "not UTF-8"),
        ("Day03_phase2.md", "Day03_phase1.md is missing"),
        ("Day4_phase1.md", "never read"),
        ("day05.json", "truncated"),
        ("Day06_phase1.md", "not a file"),
        ("aliases.json", "broken"),
        ("speeds/day01.json", "line 1: `phase` must be 1 or 2. Fix or remove this entry"),
        ("speeds/day01.json", "'yesterday' is not an ISO 8601 timestamp"),
        ("speeds/day01.json", "neither `speedMs` nor `speed_ms`. Fix or remove this entry"),
        ("speeds/day01.json", "control characters"),
        ("speeds/day02.json", "says day 3"),
        ("speeds/day03.json", "line 1: not valid JSON (Input data was truncated). Fix or move the file"),
        ("speeds/day26.json", "never read"),
        ("speeds/day04.json", "not a file"),
    ):
        assert any(name in line and place in line for line in lines), (name, place, lines)
    assert lines[-1] == "12 files read, 14 problems"


def test_check_reads_inputs_answers_and_attempts_too(data: Data) -> None:
    for name, content in (
        ("inputs/day01.txt", b"\xff"),
        ("answers/Day01_phase1.txt", b"\xff"),
        ("answers/day1.txt", b"1"),
        ("attempts/day01.jsonl", b'{"attempt": 1}\n\n{"half": '),
    ):
        path = data.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)

    lines = typed(data, "check").stdout.replace("\\", "/").splitlines()

    for name, problem in (
        ("inputs/day01.txt", "is not UTF-8 text"),
        ("answers/Day01_phase1.txt", "is not UTF-8 text"),
        ("answers/day1.txt", "is never read"),
        ("attempts/day01.jsonl", "line 1: is not a step of an attempt"),
    ):
        assert any(name in line and problem in line for line in lines), (name, lines)
    assert lines[-1] == "4 files read, 4 problems"


def test_check_reports_names_that_look_like_others(data: Data) -> None:
    data.put_speeds(1, [entry("gpt4", 1), entry("gpt\u200b4", 2)])

    (line, _) = typed(data, "check").stdout.splitlines()

    assert "the name 'gpt\\u200b4' looks like 'gpt4' and counts as it" in line


def test_check_takes_as_long_as_the_file_is_and_not_longer(data: Data) -> None:
    data.put_speeds(1, [entry("a", number, 1, "") for number in range(20_000)])

    done = typed(data, "check")

    assert done.stdout.splitlines()[-1] == "1 file read, 20000 problems"


async def test_the_doctor_asks_for_missing_tables_and_says_what_the_database_holds(
    data: Data, database_url: str
) -> None:
    environment = data.environment(BRIDGEHEAD_DATABASE_URL=database_url)
    [before] = [found for found in await examine(environment) if found.what == "database"]
    await asyncio.to_thread(db.main, ["migrate"], environment)
    [after] = [found for found in await examine(environment) if found.what == "database"]

    assert (before.verdict, before.advice) == ("wrong", "Run `bridgehead db migrate`.")
    assert after.verdict == "right"
    assert "records, attempts and aliases are in 127.0.0.1:" in after.text


async def test_the_doctor_says_that_a_database_is_gone(data: Data) -> None:
    gone = "postgresql://me:hunter2@127.0.0.1:9/none"
    [found] = [
        one for one in await examine(data.environment(BRIDGEHEAD_DATABASE_URL=gone)) if one.what == "database"
    ]

    assert found.verdict == "wrong"
    assert "is unavailable" in found.text
    assert "hunter2" not in found.text


async def test_the_doctor_tells_who_has_puzzles_that_records_come_by_themselves(data: Data) -> None:
    [before] = [found for found in await examine(data.environment()) if found.what == "records"]
    data.puzzle(1, "one", "two")
    [after] = [found for found in await examine(data.environment()) if found.what == "records"]

    assert "bridgehead aoc init" in before.advice
    assert (after.verdict, after.advice) == ("right", "")
    assert after.text == f"none yet; the first one makes {data.folder / 'speeds'}"
