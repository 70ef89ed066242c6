"""Jobs: what a person asks for, the values that the request names, and what has to be seen in the end."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """One request to an agent."""

    bridge: str
    request: str
    values: dict[str, Any]
    """By the names that parameters have; an agent passes those that a tool takes."""
    seen: tuple[str, ...]
    """What the model must have been shown."""


_DAY = {"day": 1, "phase": 1, "llm_name": "fox"}
_BAD_SCRIPT = "export async function main(ns) { ns.hakc(); }\n"
_ASK = {"messages": [{"role": "user", "content": "Hi"}], "prompt": "Hi"}
JOBS = (
    Job("aoc", "fetch the puzzle text of day 1", {"day": 1}, ("snowflakes",)),
    Job(
        "aoc", "fetch the puzzle of day 9, or say which days there are", {"day": 9}, ("Days with a text: 1",)
    ),
    Job(
        "aoc", "record that fox solved the day with a speed of 1200 ms", {**_DAY, "speed_ms": 1200}, ("1200",)
    ),
    Job(
        "aoc", "record a speed of 0 ms, and say if that can be right", {**_DAY, "speed_ms": 0}, ("less than",)
    ),
    Job(
        "aoc",
        "record a speed of 0 ms, and say how to take it back",
        {**_DAY, "speed_ms": 0},
        ("withdraw_record",),
    ),
    Job("aoc", "rank models on the leaderboard", {}, ("fox",)),
    Job(
        "aoc", "leaderboard of the model nobody, or which models there are", {"llm_name": "nobody"}, ("fox",)
    ),
    Job("aoc", "single runs in the history of fox", {"llm_name": "fox"}, ("1200",)),
    Job("aoc", "history of the model nobody, or which models there are", {"llm_name": "nobody"}, ("fox",)),
    Job("aoc", "start a timed attempt at a puzzle", _DAY, ("attempt",)),
    Job("bitburner", "list the files on home", {"server": "home"}, ("lib/a.js",)),
    Job("bitburner", "read the file old.js", {"filename": "old.js"}, ("old",)),
    Job("bitburner", "read a long file, and say how to go on", {"filename": "long.js"}, ("start_line to",)),
    Job(
        "bitburner",
        "read a file that is gone, and say what is there",
        {"filename": "gone.js"},
        ("list_files",),
    ),
    Job("bitburner", "all files with their contents", {}, ("export const a",)),
    Job("bitburner", "search files for a pattern", {"pattern": "line 3999"}, ("3999",)),
    Job(
        "bitburner",
        "write a script file and tell its problems",
        {"filename": "b.js", "content": _BAD_SCRIPT},
        ("hakc",),
    ),
    Job(
        "bitburner",
        "edit a file: replace text",
        {"filename": "old.js", "old_text": "old", "new_text": "new"},
        ("old.js",),
    ),
    Job("bitburner", "how much RAM does a script cost", {"filename": "old.js"}, ("1.6",)),
    Job(
        "bitburner",
        "find the function hack in the API definitions",
        {"query": "hack"},
        ("RAM cost",),
    ),
    Job("mercury", "ask the LLM in a chat completion", _ASK, ("careful reader",)),
    Job(
        "mercury",
        "chat completion cut at two tokens: is it whole",
        {**_ASK, "max_tokens": 2},
        ("max_tokens",),
    ),
    Job(
        "mercury",
        "chat with a model that does not exist, and which there are",
        {**_ASK, "model": "none"},
        ("mercury-2",),
    ),
    Job("mercury", "which models are there", {}, ("mercury-2",)),
    Job("mercury", "how much was used, and what it cost", {}, ("calls",)),
    Job("mercury", "fill a gap in code", {"prompt": "def f():\n", "suffix": "\n"}, ("return total",)),
    Job("mercury", "answer a batch of many prompts", {"prompts": ["One", "Two"]}, ("You asked",)),
    Job(
        "mercury",
        "apply an edit to code",
        {"original": "a = 1\n", "update": "a = 2\n"},
        ("a =",),
    ),
    Job("mercury", "stream the answer as it grows", _ASK, ("careful reader",)),
    Job(
        "mercury",
        "predict the next edit",
        {"content": "a = 1\n"},
        ("a =",),
    ),
)
