"""What a model sees: clients show it the text of a result or the structure, so each has all of it.

Every tool of every bridge is called, against real far sides. Each note and each next step is in both parts,
and the rest of the text is the contract's output, or says only what the structure says too. A new tool has to
be added to the calls below.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.bridge import make_bridge as make_mercury
from bridgehead.mercury.completion import format_usd
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from tests.aoc.data import Data
from tests.bitburner.changes.test_differences import reload, until_noticed
from tests.bitburner.playing import FILES, played
from tests.support.checked import CheckedClient, connect

Calls = list[tuple[str, dict[str, Any]]]
RECORD: dict[str, Any] = {"day": 1, "phase": 1, "llm_name": "fox"}
AOC: Calls = [
    ("fetch_instruction", {"day": 1}),
    ("fetch_instruction", {"day": 9}),
    ("record_speed", {**RECORD, "speed_ms": 1200}),
    ("record_speed", {**RECORD, "speed_ms": 0}),
    ("record_speed", {**RECORD, "day": 9, "speed_ms": 900}),
    ("withdraw_record", {**RECORD, "timestamp": "2025-12-01T05:00:00.000Z"}),
    ("speed_leaderboard", {}),
    ("speed_leaderboard", {"llm_name": "nobody"}),
    ("speed_history", {}),
    ("speed_history", {"llm_name": "nobody"}),
    ("start_attempt", RECORD),
    ("read_input", {"day": 1}),
    ("finish_attempt", {"attempt": "none", "answer": "1"}),
]
BITBURNER: Calls = [
    ("connection_status", {}),
    ("list_files", {}),
    ("read_file", {"filename": "hack.js"}),
    ("read_file", {"filename": "long.js"}),
    ("read_file", {"filename": "gone.js"}),
    ("get_all_files", {"max_bytes": 30}),
    ("get_all_files", {"glob": "*.nothing"}),
    ("get_file_metadata", {"filename": "hack.js"}),
    ("search_files", {"pattern": "hack"}),
    ("search_files", {"pattern": "no such words"}),
    ("write_file", {"filename": "new.js", "content": "export async function main(ns) { ns.hakc(); }\n"}),
    ("write_files", {"files": [{"filename": "b.js", "content": "export const b = 1;\n"}]}),
    ("edit_file", {"filename": "new.js", "old_text": "hakc", "new_text": "hack"}),
    ("move_file", {"filename": "new.js", "to": "moved.js"}),
    ("restore_file", {"filename": "new.js"}),
    ("calculate_ram", {"filename": "hack.js"}),
    ("check_files", {}),
    ("delete_file", {"filename": "lib/tools.js"}),
    ("get_netscript_definitions", {}),
    ("search_definitions", {"query": "hack"}),
    ("search_definitions", {"query": "nothing like this"}),
    ("list_servers", {}),
    ("backup_save", {}),
]
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
MERCURY: Calls = [
    ("mercury_chat_completion", ASK),
    ("mercury_chat_completion", {**ASK, "max_tokens": 2}),
    ("mercury_chat_completion", {**ASK, "model": "none"}),
    ("mercury_chat_stream", ASK),
    ("mercury_fim_completion", {"prompt": "def add(a, b):\n", "suffix": "\n"}),
    ("mercury_edit_completion", {"prompt": "<|code_to_edit|>a = 1<|/code_to_edit|>"}),
    ("mercury_apply_edit", {"original": "a = 1\n", "update": "a = 2\n"}),
    ("mercury_next_edit", {"content": "a = 1\n"}),
    (
        "mercury_decide",
        {"state": "It rains.", "questions": [{"name": "wet", "type": "noul", "instructions": "Wet?"}]},
    ),
    ("mercury_batch", {"prompts": ["One", "Two"]}),
    ("mercury_list_models", {}),
    ("mercury_usage", {}),
]
TEXT_ALONE = {"get_all_files", "get_netscript_definitions"}
"""Tools whose results are too large to be sent twice; without structure, clients show every text."""
CONTRACT_TEXTS = {
    "write_file": r"OK",
    "delete_file": r"OK",
    "record_speed": r"Recorded fox Day \d+ Phase 1: \d+ms \(avg: \d+ms\)",
}
"""First blocks that a contract fixes."""


@asynccontextmanager
async def aoc(folder: Path) -> AsyncIterator[CheckedClient]:
    data = Data(folder / "data")
    instructions = folder / "data" / "instructions"
    instructions.mkdir(parents=True, exist_ok=True)
    (instructions / "Day01_phase1.md").write_text("Count the snowflakes.\n", encoding="utf-8")
    async with connect(data.bridge()) as client:
        yield client


@asynccontextmanager
async def bitburner(folder: Path) -> AsyncIterator[CheckedClient]:
    async with played(folder) as play:
        home = play.game.servers["home"]
        home["long.js"] = "".join(f"// line {number} of a long script\n" for number in range(1, 2000))
        yield play.client


@asynccontextmanager
async def mercury(folder: Path) -> AsyncIterator[CheckedClient]:
    async with Simulator() as api:
        environment = {
            "MERCURY_API_URL": api.url,
            "MERCURY_API_KEY": "fake",
            "MERCURY_MAX_RETRIES": "0",
            "BRIDGEHEAD_STATE_DIR": str(folder),
        }
        async with connect(make_mercury(MercurySettings(environment))) as client:
            yield client


BRIDGES = {"aoc": (aoc, AOC), "bitburner": (bitburner, BITBURNER), "mercury": (mercury, MERCURY)}


@pytest.mark.parametrize("bridge", BRIDGES)
async def test_text_and_structure_of_every_tool_say_the_same(tmp_path: Path, bridge: str) -> None:
    opened, calls = BRIDGES[bridge]
    problems: list[str] = []
    has_notes = 0
    async with opened(tmp_path) as client:
        listed = {tool["name"] for tool in (await client.request("tools/list"))["tools"]}
        for name, arguments in calls:
            result = await client.call(name, arguments)
            found = find_differences(name, result, arguments)
            problems += [f"{name}({arguments}): {problem}" for problem in found]
            has_notes += "notes" in (result.get("structuredContent") or {})

    assert listed == {name for name, _ in calls}, "call the new tool here, too"
    assert problems == []
    # It looked at something.
    assert has_notes


def find_differences(name: str, result: dict[str, Any], arguments: dict[str, Any] | None = None) -> list[str]:
    """Return what a client that shows one part keeps from its model, which knows its own arguments."""
    texts = [block["text"] for block in result["content"]]
    structure = result.get("structuredContent")
    if structure is None:
        is_whole = len(texts) == 1 or name in TEXT_ALONE
        return [] if is_whole else ["more than one text, and no structure"]
    structure = dict(structure)
    notes, steps = structure.get("notes", []), structure.get("next", [])
    told = [*(f"Note: {note}" for note in notes), *(f"Next: {step}" for step in steps)]
    # The structure has the cost as numbers.
    if (cost := structure.get("metadata", {}).get("cost_usd")) is not None and texts[1:]:
        told.append(f"Cost: {format_usd(cost)}.")
    expected = ["\n".join(told)] if told else []
    if texts[1:] != expected:
        return [f"the blocks after the first are {texts[1:]}, and the notes are {expected}"]
    if re.fullmatch(CONTRACT_TEXTS.get(name, r"(?!)"), texts[0]):
        return []
    said = " ".join([*_strings(structure), *_strings(arguments or {})])
    try:
        told = list(_strings(json.loads(texts[0])))
    except ValueError:
        pass
    else:  # the structure again, as the contract's JSON
        return [f"{fact!r} is in the text alone" for fact in told if fact not in said]
    return [
        f"{fact!r} is in the text alone"
        for fact in _find_facts(texts[0])
        # A path and a line, as in `hack.js:1`, are two facts.
        if any(part not in said and not _is_number_of(part, structure) for part in fact.split(":"))
    ]


def _find_facts(text: str) -> Iterator[str]:
    """Find what a text tells: numbers, paths and names of things; the words around them are wording."""
    for match in re.finditer(r"[\w./:-]*\d[\w.:/-]*|[\w-]+/[\w./-]+|\w+_\w+|[\w-]+\.(?:js|txt|ts)", text):
        yield match[0].rstrip(".:")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    else:
        yield str(value)


def _is_number_of(fact: str, structure: Any) -> bool:
    """Return whether a number in the text is one in the structure, perhaps rounded, or counts a list."""
    match = re.match(r"\d[\d,]*(?:\.\d+)?", fact)
    if match is None:
        return False
    number = float(match[0].replace(",", ""))
    decimals = len(match[0].partition(".")[2])
    return any(round(abs(one), decimals) == number for one in _numbers(structure))


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        yield len(value)
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield from (value, value / 1000, value * 100)


async def test_an_older_save_is_told_in_both_parts_of_whatever_is_called_next(
    tmp_path: Path,
) -> None:
    async with played(tmp_path) as play:
        before = dict(FILES["home"])
        await play.ok("write_file", filename="a.js", content="// new\n")
        await reload(play, before)
        await until_noticed(play, 1)
        result = await play.client.call("list_files", {})

    assert find_differences("list_files", result) == []
    assert any("older save" in note for note in result["structuredContent"]["notes"])


async def test_definitions_of_a_game_that_is_away_say_so_in_both_parts(tmp_path: Path) -> None:
    async with played(tmp_path) as play:
        await play.ok("search_definitions", query="hack")
        await play.game.hang_up()
        result = await play.client.call("search_definitions", {"query": "hack"})
        whole = await play.client.call("get_netscript_definitions")

    assert find_differences("search_definitions", result) == []
    (note,) = result["structuredContent"]["notes"]
    assert note.startswith("No game is connected; these definitions are from ")
    # The whole file is text alone, of which every client shows all blocks.
    assert "structuredContent" not in whole
    assert whole["content"][1]["text"] == f"Note: {note}"


SMALLEST_LIMIT = 30_000
"""Characters of text and structure together that Qwen Code moves into a file: less than any other CLI."""
BAD_LINE = f"export function f(ns) {{ ns.hakc(); ns.growe(); }} // {'x' * 300}\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "goes_on"),
    [
        ("search_files", {"pattern": "hakc"}, {"pattern": "hakc", "glob": "s/9.js"}),
        ("check_files", {}, {"glob": "s/9.js"}),
        ("restore_file", {"list_only": True}, {"list_only": True, "version": ...}),
        ("get_all_files", {}, {"everything": True}),
        ("get_file_metadata", {}, {"filename": "s/9.js"}),
        ("read_file", {"filename": "long.js"}, {"filename": "long.js", "start_line": 100}),
    ],
)
async def test_what_is_long_comes_in_parts_that_every_client_shows_whole(
    tmp_path: Path, tool: str, arguments: dict[str, Any], goes_on: dict[str, Any]
) -> None:
    async with played(tmp_path) as play:
        home = play.game.servers["home"]
        home["long.js"] = "".join(f"// {number}\n{BAD_LINE}" for number in range(1000))
        for place in range(0, 150, 50):
            files = [
                {"filename": f"s/{number}.js", "content": BAD_LINE * 5} for number in range(place, place + 50)
            ]
            await play.ok("write_files", files=files)
        result = await play.client.call(tool, arguments)
        # A tool without structure tells its notes in a second text.
        shown = result.get("structuredContent") or {"notes": [result["content"][-1]["text"]], "next": True}
        if goes_on.get("version") is ...:
            goes_on["version"] = shown["versions"][-1]["version"]
        more = await play.client.call(tool, goes_on)

    assert find_differences(tool, result, arguments) == []
    whole = [block["text"] for block in result["content"]] + [json.dumps(shown, ensure_ascii=False)]
    assert sum(map(len, whole)) < SMALLEST_LIMIT
    # It says that there is more and how to get it, and that works.
    assert shown["notes"]
    assert shown.get("next") or "start_line" in shown["notes"][0]
    assert not more.get("isError")
    assert more["content"][0]["text"] not in {result["content"][0]["text"], "Nothing is kept."}


async def test_a_puzzle_and_each_page_of_its_input_are_shown_whole(tmp_path: Path) -> None:
    data = Data(tmp_path / "data")
    lines = "".join(f"{number} gulls\n" for number in range(3_000))
    data.puzzle(1, "Count the gulls.\n" * 400)
    (data.folder / "inputs").mkdir()
    (data.folder / "inputs" / "day01.txt").write_text(lines)
    async with connect(data.bridge()) as client:
        results = [await client.call("start_attempt", RECORD)]
        attempt = results[0]["structuredContent"]["attempt"]
        while (offset := results[-1]["structuredContent"]["next_offset"]) is not None:
            results.append(await client.call("read_input", {"attempt": attempt, "offset": offset}))

    assert "".join(result["structuredContent"]["input"] for result in results) == lines
    for result in results:
        structure = json.dumps(result["structuredContent"], ensure_ascii=False)
        assert sum(len(block["text"]) for block in result["content"]) + len(structure) < SMALLEST_LIMIT


async def test_a_diff_without_a_difference_and_files_that_are_not_restored_say_so_in_both_parts(
    tmp_path: Path,
) -> None:
    async with played(tmp_path) as play:
        for content in ("// one\n", "// two\n"):
            await play.ok("write_file", filename="a.js", content=content)
        _, listed = await play.ok("restore_file", filename="a.js", list_only=True)
        version = listed["versions"][0]["version"]
        same = {"filename": "a.js", "version": version, "diff": True}
        compared = await play.client.call("restore_file", same)
        several = await play.client.call("restore_file", {"filenames": ["a.js", "gone.js"]})

    assert compared["structuredContent"]["notes"] == [f"a.js holds the same as version {version}."]
    assert several["structuredContent"]["next"] == [
        "Call restore_file with list_only to see what is kept, and name a version."
    ]
    for result in (compared, several):
        assert find_differences("restore_file", result) == []
