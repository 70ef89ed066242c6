"""What a bridge says about its tools: everything that a client can read of it without a far side."""

from pathlib import Path
from typing import Any

from bridgehead.mcp import UI_EXTENSION
from tests.support.checked import CheckedClient

PUZZLE = "An elf's machine has one button, record_speed. Count the snowflakes.\n"
BRIDGES = ("aoc", "bitburner", "mercury")
APPS: dict[str, Any] = {"extensions": {UI_EXTENSION: {}}}
PROMPTS: dict[str, dict[str, str]] = {
    "solve_day": {"day": "2"},
    "compare_models": {},
    "review_code": {"code": "x = 1"},
    "complete_code": {"before": "x = ", "after": "\n"},
    "explain": {"subject": "a monad"},
}
"""Arguments of the prompts that need no game."""
FAILING: tuple[dict[str, Any], ...] = (
    {"day": 99},
    {"day": 3, "phase": 1, "llm_name": "x"},
    {"day": 1, "phase": 1, "llm_name": "x", "timestamp": "2025-12-01T05:00:00.000Z"},
    {"attempt": "none", "answer": "1"},
    {"filename": "a.js", "server": ""},
    {"filename": "a.js", "content": "x"},
    {"filename": "a.js", "old_text": "x", "new_text": "y"},
    {"query": "hack"},
    {"messages": [{"role": "user", "content": "hi"}], "model": "none"},
    {"prompt": "x", "model": "none"},
)
"""Arguments that one tool or another takes, and then fails with."""


def make_environment(folder: Path) -> dict[str, str]:
    """Return settings with which each bridge starts alone; no game dials in, and no API answers."""
    (folder / "instructions").mkdir()
    (folder / "instructions" / "Day01_phase1.md").write_text(PUZZLE)
    (folder / "instructions" / "Day02_phase1.md").write_text("Count the elves.\n")
    return {
        "AOC_DATA_DIR": str(folder),
        "BRIDGEHEAD_STATE_DIR": str(folder / "state"),
        "BITBURNER_LISTEN": "127.0.0.1:0",
        "BITBURNER_CONNECT_WAIT_MS": "0",
        "MERCURY_API_URL": "http://127.0.0.1:9",
        "MERCURY_MAX_RETRIES": "0",
    }


async def gather(client: CheckedClient, names: list[str]) -> list[Any]:
    """Return the instructions, lists, prompts, pages and failures that a client gets without a far side."""
    tools = (await client.request("tools/list"))["tools"]
    prompts = (await client.request("prompts/list"))["prompts"]
    said: list[Any] = [*client.sent, tools, prompts, await client.request("resources/templates/list")]
    pages = {tool.get("_meta", {}).get("ui", {}).get("resourceUri") for tool in tools} - {None}
    said += [await client.request("resources/read", {"uri": uri}) for uri in pages]
    for prompt in prompts:
        if prompt["name"] in PROMPTS:
            arguments = PROMPTS[prompt["name"]]
            said.append(await client.request("prompts/get", {"name": prompt["name"], "arguments": arguments}))
    for name in [*names, "unknown"]:
        for arguments in ({}, {"nothing": "known"}, *FAILING):
            answer = await client.answer_to("tools/call", {"name": name, "arguments": arguments})
            if "error" in answer or answer["result"].get("isError"):
                said.append(answer)
    return said
