"""The official Inspector against the aoc bridge: owns the contract's exchanges as it makes them."""

import sys
from pathlib import Path
from typing import Any

from tests.interop.check import Check
from tests.interop.inspector import INSPECTOR, REVISIONS, Judge, of_result

AOC = (sys.executable, "-m", "bridgehead", "aoc")
TOOLS = [
    "fetch_instruction",
    "record_speed",
    "withdraw_record",
    "speed_leaderboard",
    "speed_history",
    "start_attempt",
    "read_input",
    "finish_attempt",
]
PUZZLE = "# Day 1\n\n## Phase 1\nCount the gulls.\n\n## Phase 2\nNow count the herons."
RUN = '{"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1250}'


def checks(node: str, home: Path) -> list[Check]:
    """Every exchange in every era; each era has a data directory of its own in the given home."""
    INSPECTOR.install()
    program = (node, str(INSPECTOR.home / "clients" / "launcher" / "build" / "index.js"), "--cli")
    return [
        Check(
            name=f"inspector {INSPECTOR.version}, {era}, aoc, {title}",
            command=(
                *program,
                "-e",
                f"AOC_DATA_DIR={_data(home / f'aoc-{era}')}",
                *AOC,
                *arguments,
                "--protocol-era",
                era,
                "--format",
                "json",
            ),
            judge=of_result(judge),
            environment={"HOME": str(home)},
        )
        for era in REVISIONS
        for title, arguments, judge in _calls()
    ]


def _data(folder: Path) -> Path:
    (folder / "instructions").mkdir(parents=True, exist_ok=True)
    (folder / "instructions" / "Day01_phase1.md").write_text("Count the gulls.")
    (folder / "instructions" / "Day01_phase2.md").write_text("Now count the herons.")
    return folder


def _calls() -> list[tuple[str, tuple[str, ...], Judge]]:
    fetch = ("--tool-name", "fetch_instruction", "--tool-args-json", '{"day": 1}')
    record = ("--tool-name", "record_speed", "--tool-args-json", RUN)
    return [
        ("tools/list", ("--method", "tools/list", "--strict"), _lists_tools),
        ("resources/list", ("--method", "resources/list"), _lists_days),
        ("resources/read", ("--method", "resources/read", "--uri", "aoc://day01"), _reads),
        ("prompts/list", ("--method", "prompts/list"), _lists_prompts),
        ("fetch_instruction", ("--method", "tools/call", *fetch), _says(PUZZLE)),
        (
            "record_speed",
            ("--method", "tools/call", *record),
            _says("Recorded gpt4 Day 1 Phase 1: 1250ms (avg: 1250ms)"),
        ),
    ]


def _lists_tools(result: Any) -> None:
    names = [tool["name"] for tool in result["tools"]]
    assert names == TOOLS, names


def _lists_days(result: Any) -> None:
    days = [one for one in result["resources"] if "day" in one["uri"]]  # beside the leaderboard
    (day,) = days
    assert (day["uri"], day["name"]) == ("aoc://day01", "Day 1 Instructions"), day


def _reads(result: Any) -> None:
    (content,) = result["contents"]
    assert content["text"] == PUZZLE, content


def _lists_prompts(result: Any) -> None:
    names = [prompt["name"] for prompt in result["prompts"]]
    assert names == ["solve_day", "compare_models"], names


def _says(expected: str) -> Judge:
    def judge(result: Any) -> None:
        assert [block["text"] for block in result["content"]] == [expected], f"the text is not {expected}"

    return judge
