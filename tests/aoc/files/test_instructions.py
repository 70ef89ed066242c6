"""Instructions: which files a day's text comes from, and what is said where it cannot be read."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.aoc.files import instructions
from tests.aoc.data import CONTRACT, Data
from tests.support.checked import connect


async def fetched(data: Data, day: int) -> str:
    async with connect(data.bridge()) as client:
        return await client.text("fetch_instruction", {"day": day})


async def refusal(data: Data, day: int) -> Any:
    async with connect(data.bridge(), revision=CONTRACT) as client:
        return await client.error("tools/call", {"name": "fetch_instruction", "arguments": {"day": day}})


def put_legacy(data: Data, day: int, content: Any) -> None:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    (data.instructions / f"day{day:02}.json").write_bytes(text)


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


async def test_the_older_file_serves_a_day_that_has_no_markdown(data: Data) -> None:
    put_legacy(data, 3, {"day": 3, "phase1": "one\r\n", "phase2": "two\r", "author": "me"})

    assert await fetched(data, 3) == "# Day 3\n\n## Phase 1\none\n\n\n## Phase 2\ntwo\n"


@pytest.mark.parametrize(
    "content", [{"day": 3, "phase1": "one"}, {"day": 3, "phase1": "one", "phase2": None}]
)
async def test_the_older_file_may_have_one_phase(data: Data, content: Any) -> None:
    put_legacy(data, 3, content)

    assert await fetched(data, 3) == "# Day 3\n\none"


async def test_markdown_comes_before_the_older_file(data: Data) -> None:
    put_legacy(data, 3, {"day": 3, "phase1": "older", "phase2": "older"})
    data.puzzle(3, "newer")

    assert await fetched(data, 3) == "# Day 3\n\nnewer"


async def test_a_byte_order_mark_is_not_part_of_the_text(data: Data) -> None:
    data.puzzle(3, b"\xef\xbb\xbftext")

    assert await fetched(data, 3) == "# Day 3\n\ntext"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"{", "truncated"),
        (b'{"day": 3}', "phase1"),
        (b'{"day": 4, "phase1": "x"}', "day 4"),
        (b'{"day": 3, "phase1": "\xff"}', "day03.json"),
        (b"[" * 100_000, "day03.json"),
    ],
)
async def test_a_broken_older_file_is_named_with_what_would_be_right(
    data: Data, content: bytes, word: str
) -> None:
    put_legacy(data, 3, content)

    error = await refusal(data, 3)

    assert error["code"] == -1
    assert word in error["message"]
    assert str(data.instructions / "day03.json") in error["message"]
    assert '{"day": 3, "phase1": "...", "phase2": "..."}' in error["message"]


async def test_a_text_that_is_not_utf8_is_named_with_the_place_and_what_to_do(data: Data) -> None:
    data.puzzle(3, b"caf\xe9 au lait")

    error = await refusal(data, 3)

    assert error["code"] == -1
    assert "Day03_phase1.md is not UTF-8 text" in error["message"]
    assert "byte 3" in error["message"]
    assert "Save it as UTF-8." in error["message"]


async def test_a_broken_second_phase_does_not_block_the_first_and_is_not_left_out_silently(
    data: Data,
) -> None:
    data.puzzle(3, "one", b"\xff")

    text = await fetched(data, 3)

    assert text.startswith("# Day 3\n\n## Phase 1\none\n\n## Phase 2\n(Phase 2 cannot be shown: ")
    assert "Day03_phase2.md is not UTF-8 text" in text
    assert "Save it as UTF-8." in text


async def test_a_missing_day_lists_the_days_that_there_are(data: Data) -> None:
    assert "`bridgehead aoc init` makes a first puzzle" in (await refusal(data, 7))["message"]
    data.puzzle(1, "one")
    data.puzzle(12, "twelve")

    message = (await refusal(data, 7))["message"]

    assert message.startswith("Instruction file not found for day 7 (tried Day07_phase1.md and day07.json)")
    assert message.endswith("Days with a text: 1, 12.")


async def test_a_folder_in_the_place_of_a_file_is_named(data: Data) -> None:
    (data.instructions / "Day03_phase1.md").mkdir()

    error = await refusal(data, 3)

    assert error["code"] == -1
    assert str(data.instructions / "Day03_phase1.md") in error["message"]


async def test_a_pipe_in_the_place_of_a_file_makes_nobody_wait(data: Data) -> None:
    os.mkfifo(data.instructions / "Day03_phase1.md")

    assert "it is not a file" in (await refusal(data, 3))["message"]


async def test_a_file_that_is_far_too_large_is_refused(data: Data) -> None:
    path = data.instructions / "Day03_phase1.md"
    with path.open("wb") as file:
        file.truncate(instructions.MAX_BYTES + 1)

    assert "bytes" in (await refusal(data, 3))["message"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(first=ANY_TEXT, second=st.none() | ANY_TEXT, legacy=st.booleans())
async def test_any_text_comes_back_intact(
    data: Data, first: str, second: str | None, *, legacy: bool
) -> None:
    for old in data.instructions.iterdir():
        old.unlink()
    if legacy:
        put_legacy(data, 5, {"day": 5, "phase1": first, "phase2": second})
    else:
        data.puzzle(5, first, second)

    text = await fetched(data, 5)

    marks = ("", "") if legacy else ("\ufeff", "\ufeff")
    one, two = (
        None if part is None else part.removeprefix(mark).replace("\r\n", "\n").replace("\r", "\n")
        for part, mark in zip((first, second), marks, strict=True)
    )
    if two is None:
        assert text == f"# Day 5\n\n{one}"
    else:
        assert text == f"# Day 5\n\n## Phase 1\n{one}\n\n## Phase 2\n{two}"


async def test_a_path_that_leads_through_a_file_is_named(data: Data) -> None:
    data.instructions.rmdir()
    data.instructions.write_text("not a folder")

    error = await refusal(data, 3)

    assert error["code"] == -1
    assert str(data.instructions / "Day03_phase1.md") in error["message"]


@pytest.mark.parametrize(
    ("known", "answer", "verdict"),
    [
        ("447", "0447", "right"),
        ("447", "00446", "too_low"),
        ("447", "448", "too_high"),
        ("-3", "-03", "right"),
        ("0447", "447", "wrong"),
        ("0447", "0447", "right"),
        ("447", "+447", "wrong"),
        ("abc", "447", "wrong"),
    ],
)
def test_zeros_in_front_of_a_number_do_not_count_unless_the_answer_is_a_code(
    tmp_path: Path, known: str, answer: str, verdict: str
) -> None:
    (tmp_path / "Day01_phase1.txt").write_text(known)

    assert instructions.check_answer(str(tmp_path), 1, 1, answer) == verdict
