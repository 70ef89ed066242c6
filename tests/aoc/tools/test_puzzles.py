"""Puzzles: which files a day's text comes from, and what is said where it cannot be read."""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.aoc.data import CONTRACT, Data
from tests.support.checked import connect


async def fetched(data: Data, day: int) -> str:
    async with connect(data.bridge()) as client:
        return await client.text("fetch_instruction", {"day": day})


async def refusal(data: Data, day: int) -> Any:
    async with connect(data.bridge(), revision=CONTRACT) as client:
        return await client.error("tools/call", {"name": "fetch_instruction", "arguments": {"day": day}})


async def listed(data: Data, **more: str) -> list[Any]:
    async with connect(data.bridge(**more), revision=CONTRACT) as client:
        resources: list[Any] = (await client.request("resources/list"))["resources"]
        return resources


def put_legacy(data: Data, day: int, content: Any) -> None:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    (data.instructions / f"day{day:02}.json").write_bytes(text)


async def test_only_days_that_can_be_read_are_listed(data: Data) -> None:
    data.puzzle(9, "nine")
    data.puzzle(10, "ten", "ten")
    put_legacy(data, 1, {"day": 1, "phase1": "one"})
    for name in ("Day26_phase1.md", "Day00_phase1.md", "Day07_phase2.md", "day1.json", "notes.md"):
        (data.instructions / name).write_text("x")
    (data.instructions / "Day08_phase1.md").mkdir()

    assert [item["uri"] for item in await listed(data)] == ["aoc://day10", "aoc://day09", "aoc://day01"]


async def test_the_description_names_the_configured_year(data: Data) -> None:
    Data(data.folder / "2019").puzzle(1, "one")

    (item,) = await listed(data, AOC_YEAR="2019")

    assert item["description"] == "Full puzzle instructions for Advent of Code 2019 Day 1"


async def test_without_a_folder_nothing_is_listed(tmp_path: Path) -> None:
    data = Data(tmp_path)
    data.instructions.rmdir()

    assert await listed(data) == []


async def test_the_number_in_the_uri_is_completed_with_the_days_that_there_are(data: Data) -> None:
    for day in (1, 2, 12):
        data.puzzle(day, "text")
    params = {
        "ref": {"type": "ref/resource", "uri": "aoc://day{day}"},
        "argument": {"name": "day", "value": "0"},
    }

    async with connect(data.bridge()) as client:
        result = await client.request("completion/complete", params)

    assert result["completion"]["values"] == ["01", "02"]


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def put_input(data: Data, day: int, content: bytes) -> None:
    (data.folder / "inputs").mkdir(exist_ok=True)
    (data.folder / "inputs" / f"day{day:02}.txt").write_bytes(content)


async def test_inputs_are_resources(data: Data) -> None:
    data.puzzle(1, "one")
    put_input(data, 1, b"\xef\xbb\xbf1\r\n2\r\n")
    ref = {"type": "ref/resource", "uri": "aoc://day{day}/input"}
    async with connect(data.bridge()) as client:
        uris = [item["uri"] for item in (await client.request("resources/list"))["resources"]]
        read = await client.request("resources/read", {"uri": "aoc://day01/input"})
        params = {"ref": ref, "argument": {"name": "day", "value": ""}}
        completed = await client.request("completion/complete", params)
        missing = await client.error("resources/read", {"uri": "aoc://day02/input"})

    assert uris == ["aoc://leaderboard", "aoc://day01", "aoc://day01/input"]
    assert read["contents"][0]["text"] == "1\n2\n"
    assert completed["completion"]["values"] == ["01"]
    assert (missing["code"], "There is no input for day 2" in missing["message"]) == (-1, True)


async def test_a_year_without_a_folder_never_serves_or_changes_another_ones_files(data: Data) -> None:
    data.puzzle(1, "of 2025")
    run = {"day": 1, "phase": 1, "llm_name": "a", "speed_ms": 5}
    async with connect(data.bridge(AOC_YEAR="2024"), revision=CONTRACT) as client:
        error = await client.error("tools/call", {"name": "fetch_instruction", "arguments": {"day": 1}})
        await client.call("record_speed", run)

    assert str(data.folder / "2024" / "instructions" / "Day01_phase1.md") in error["message"]
    assert not data.speeds.exists()
    async with connect(data.bridge(), revision=CONTRACT) as client:
        board = await client.call("speed_leaderboard", {})
    assert "a" not in {row["llm"] for row in board.get("structuredContent", {}).get("models", ())}
