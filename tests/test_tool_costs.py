"""What the tools cost a model: no tool grows by more than a tenth, and a new one is short.

`tool_costs.json` has the bytes of each tool's name, description and input schema before version 0.3, as
`bridgehead tools --cost --json` prints them. Tokens are estimated; `make agents` counts them.
"""

import json
from pathlib import Path

import pytest

from bridgehead.commands.tools import estimate_tokens, measure_costs
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import make_bridge

BEFORE: dict[str, dict[str, int]] = json.loads(
    Path(__file__).with_name("tool_costs.json").read_text(encoding="utf-8")
)
GROWTH = 1.1
EXCEPTIONS = {"list_files": 300}
"""Bytes of tools that may grow further: list_files was the shortest, and got `glob` and `page`."""
NEW_TOKENS = 130
MERCURY_TOKENS = 2_600


def measure(bridge: str, state: Path) -> dict[str, int]:
    tools = make_bridge(plugins.load(bridge), {"BRIDGEHEAD_STATE_DIR": str(state)}).tools
    return measure_costs({name: tool for name, tool in tools.items() if tool.visible_to == "everyone"})


@pytest.mark.parametrize("bridge", BEFORE)
def test_no_tool_grows_by_more_than_a_tenth_and_a_new_one_is_short(bridge: str, tmp_path: Path) -> None:
    before, now = BEFORE[bridge], measure(bridge, tmp_path)
    over = {
        name: f"{size} bytes, was {before.get(name, 'new')}"
        for name, size in now.items()
        if (
            size > EXCEPTIONS.get(name, before[name] * GROWTH)
            if name in before
            else estimate_tokens(size) > NEW_TOKENS
        )
    }

    assert before.keys() <= now.keys()
    assert over == {}


def test_the_tools_of_mercury_stay_within_their_total(tmp_path: Path) -> None:
    assert estimate_tokens(sum(measure("mercury", tmp_path).values())) <= MERCURY_TOKENS
