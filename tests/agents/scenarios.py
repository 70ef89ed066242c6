"""Scenarios: what a model does with the bridges in one run, and what it must have seen of it.

Nothing here says what a bridge answers. The log of each server has its answers, and every note, every next
step and every failure in them must be in what the model was shown.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.agents.far_sides import FarSides
from tests.support.fake_model import CALL_BY_NAME, PROGRAM, SEARCHES, Call, Say, Turn


@dataclass(frozen=True)
class Step:
    """One call of the script."""

    scenario: str
    bridge: str
    call: Call
    sees: tuple[str, ...] = ()
    """Words that must reach the model beside notes and failures."""
    whole: bool = False
    """Whether the whole content must arrive: its first, middle and last line."""
    fails: bool = False
    noted: bool = False
    """Whether the answer must have notes or next steps; otherwise the scenario shows nothing."""


def _record(speed_ms: int) -> dict[str, Any]:
    return {"day": 1, "phase": 1, "llm_name": "fox", "speed_ms": speed_ms}


WRONG_SCRIPT = "export async function main(ns) { ns.hakc(); }\n"
COST = re.compile(r"^(?:Cost: |Up to \$|Left of the budget: ).*$", re.MULTILINE)
"""What mercury's call cost; the structure has it as numbers."""
STEPS = (
    Step(
        "text", "aoc", Call("fetch_instruction", {"day": 1}, "puzzle instruction of a day"), ("snowflakes",)
    ),
    Step("error", "aoc", Call("fetch_instruction", {"day": 9}, "puzzle instruction of a day"), fails=True),
    Step("warning", "aoc", Call("record_speed", _record(0), "record solving speed"), noted=True),
    Step("structure", "aoc", Call("speed_leaderboard", {}, "rank models by speed"), ("fox",)),
    Step("structure", "bitburner", Call("list_files", {}, "list files in the Bitburner game"), ("lib/a.js",)),
    Step(
        "long file",
        "bitburner",
        Call("read_file", {"filename": "long.js"}, "read a file in the Bitburner game"),
        whole=True,
        noted=True,
    ),
    Step("error", "bitburner", Call("read_file", {"filename": "gone.js"}, "read a file"), fails=True),
    Step(
        "warning",
        "bitburner",
        Call("write_file", {"filename": "new.js", "content": WRONG_SCRIPT}, "write a file in Bitburner"),
        ("ns.hakc does not exist",),
        noted=True,
    ),
    Step("nobody there", "bitburner", Call("delete_file", {"filename": "old.js"}, "delete a game file")),
    Step(
        "structure",
        "mercury",
        Call(
            "mercury_chat_completion",
            {"messages": [{"role": "user", "content": "Hi"}]},
            "ask the Mercury diffusion LLM",
        ),
    ),
    Step(
        "warning",
        "mercury",
        Call(
            "mercury_chat_completion",
            {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2},
            "ask the Mercury diffusion LLM",
        ),
        noted=True,
    ),
    Step(
        "error",
        "mercury",
        Call(
            "mercury_chat_completion",
            {"messages": [{"role": "user", "content": "Hi"}], "model": "no-such-model"},
            "ask the Mercury diffusion LLM",
        ),
        fails=True,
    ),
)
SCRIPT: list[Call | Say] = [*(step.call for step in STEPS), Say("All done.")]
CANCELLED: list[Call | Say] = [STEPS[-3].call, Say("All done.")]


@dataclass(frozen=True)
class Outcome:
    """What the model saw of one step."""

    step: Step
    problems: list[str]
    size: int
    """Bytes of the result that it was shown."""


def read_log(far: FarSides, bridge: str) -> tuple[str, list[str], list[dict[str, Any]], str]:
    """Return the revision that was spoken, the listed tools, the answers to calls and the instructions."""
    revision, instructions = "", ""
    methods: dict[Any, str] = {}
    tools: list[str] = []
    answers: list[dict[str, Any]] = []
    for line in far.log(bridge).read_text(encoding="utf-8").splitlines():
        direction, raw = json.loads(line)
        message = json.loads(raw)
        if direction == "in" and "method" in message:
            methods[message.get("id")] = message["method"]
            continue
        method, result = methods.get(message.get("id")), message.get("result", {})
        if direction == "in" or method is None or "id" not in message:
            continue
        if method == "initialize":
            revision = result.get("protocolVersion", revision)
        elif method == "server/discover" and result:
            revision = "2026-07-28"
        elif method == "tools/list":
            tools = [one["name"] for one in result.get("tools", []) if not _is_of_a_page(one)] or tools
        elif method == "tools/call" and result.get("resultType") != "input_required":
            answers.append(message)
        instructions = result.get("instructions", instructions)
    return revision, tools, answers, instructions


def _is_of_a_page(tool: dict[str, Any]) -> bool:
    """Return whether only an app's page calls a tool."""
    return bool(tool.get("_meta", {}).get("ui", {}).get("visibility") == ["app"])


def judge(turns: list[Turn], far: FarSides) -> list[Outcome]:
    """Compare what each server answered with what the model was shown of it."""
    shown = _results(turns)
    answers = {bridge: iter(read_log(far, bridge)[2]) for bridge in ("aoc", "bitburner", "mercury")}
    outcomes: list[Outcome] = []
    for step, result in zip(STEPS, [*shown, *[None] * len(STEPS)], strict=False):
        if result is None:
            outcomes.append(Outcome(step, ["the call never came to an answer"], 0))
            continue
        answer = next(answers[step.bridge], None)
        problems = ["the server was not called"] if answer is None else _compare(step, answer, result)
        outcomes.append(Outcome(step, problems, len(result.encode())))
    return outcomes


def _results(turns: list[Turn]) -> list[str]:
    """Return what the model saw of each call, without its searches."""
    last = turns[-1]
    pairs = zip(last.calls, last.results, strict=False)
    return [result for name, result in pairs if name.rpartition(".")[2] not in SEARCHES]


def _compare(step: Step, answer: dict[str, Any], result: str) -> list[str]:
    seen = _flat(result)
    served = answer.get("result", {})
    is_error = "error" in answer or served.get("isError", False)
    problems = []
    if is_error != step.fails and step.scenario != "nobody there":
        problems.append("the call failed" if is_error else "the call did not fail")
    must_see = list(step.sees)
    if is_error:
        texts = [block["text"] for block in served.get("content", [])]
        # By sentence: in the structure, the message and the next step are apart.
        for text in texts or [answer["error"]["message"]]:
            must_see += re.split(r"(?<=[.:]) (?=[A-Za-z])", text)
    structure = served.get("structuredContent") or {}
    told = [*structure.get("notes", []), *structure.get("next", [])]
    # What is in one part alone must reach the model, too: that is how a warning gets lost.
    further = "\n".join(block["text"] for block in served.get("content", [])[1:])
    told += re.split(r"^(?:Note|Next): ", COST.sub("", further), flags=re.MULTILINE)[1:]
    if COST.search(further) and not any(word in seen for word in ("Cost: ", "cost_usd", "uncertain_usd")):
        problems.append("missing: the cost")
    if step.noted and not told:
        problems.append("the server's answer has neither notes nor next steps")
    must_see += told
    if step.whole:
        lines = structure.get("content", "").splitlines() or ["the content"]
        must_see += [lines[0], lines[len(lines) // 2], lines[-1]]
    problems += [f"missing: {words[:80]}" for words in must_see if _flat(words) not in seen]
    return problems


def _flat(text: str) -> str:
    """Return a text without what JSON in JSON adds to it."""
    return re.sub(r"\s+", " ", re.sub(r"\\+(?:n|t|u003c|u003e)?", " ", text).replace('"', " ")).strip()


def what_is_shown(turns: list[Turn]) -> str:
    """Return which of text and structure the model sees, by the warning's answer."""
    result = _results(turns)[2] if len(_results(turns)) > 2 else ""
    has_text, has_structure = "Recorded fox" in result, "stdev" in result
    return {(True, True): "both", (True, False): "text", (False, True): "structure"}.get(
        (has_text, has_structure), "neither"
    )


def how_offered(turns: list[Turn]) -> str:
    """Return how the model gets to the tools."""
    used = set(turns[-1].calls)
    if PROGRAM in used:
        return "in a program"
    if CALL_BY_NAME in used or used & set(SEARCHES):
        return "by search"
    return "directly"


def missing_tools(turns: list[Turn], far: FarSides) -> list[str]:
    """Return the servers' tools that the model can neither see nor find."""
    if how_offered(turns) != "directly":
        # What the script called was found, or there is a problem for its step.
        names = " ".join(one.name for turn in turns for one in turn.tools)
        text = names + turns[0].text + " ".join(one.description for one in turns[0].tools)
        has_names = "read_file" in turns[0].text
        listed = [tool for bridge in ("aoc", "bitburner", "mercury") for tool in read_log(far, bridge)[1]]
        return [tool for tool in listed if tool not in text] if has_names else []
    return [
        tool
        for bridge in ("aoc", "bitburner", "mercury")
        for tool in read_log(far, bridge)[1]
        if turns[0].find(tool) is None
    ]
