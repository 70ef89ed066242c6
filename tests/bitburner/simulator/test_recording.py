"""The recording: what a real game was asked and said, replayed against the simulated one."""

import json
from pathlib import Path
from typing import Any

from tests.support.game import World, answer

RECORDING = Path(__file__).parents[1] / "recording.jsonl"
CUT = 420
"""Characters that the recording keeps of a long reply, beside its whole length."""

CANNOT_MATCH = {
    21: "the definitions are the game's own text; the simulated ones are ours, and of another length",
    106: "big.txt was written by a trial of sizes that the recording leaves out",
}
"""Requests by id whose replies differ, and why. Nothing else may differ, and these must."""


def replayed(world: World, line: dict[str, Any]) -> str:
    """Return what the simulated game says to a request of the recording; nothing is the empty text."""
    request: str = line["request"]
    if request.startswith("b'"):
        return ""  # a binary frame never reaches the core: test_game.py has it on the wire
    said = answer(world, request)
    return said.decode() if said is not None else ""


def matches(said: str, line: dict[str, Any]) -> bool:
    """Tell whether a reply is the recorded one, as far as that was kept."""
    if line.get("reply_cut"):
        return said.startswith(line["reply"][:CUT]) and len(said) == line["reply_chars"]
    return bool(said == line["reply"])


def name(line: dict[str, Any]) -> Any:
    """Return the id of a request that has one, or the request itself."""
    try:
        return json.loads(line["request"])["id"]
    except (ValueError, TypeError, KeyError):
        return line["request"]


def test_the_simulated_game_answers_the_recording_as_the_real_one_did() -> None:
    lines = [json.loads(line) for line in RECORDING.read_text(encoding="utf-8").splitlines()]
    # The recorded build is older than getSaveFile.
    world = World(2, lacking={"getSaveFile"})

    differing = {name(line) for line in lines if not matches(replayed(world, line), line)}

    assert len(lines) == 120
    assert differing == set(CANNOT_MATCH)
