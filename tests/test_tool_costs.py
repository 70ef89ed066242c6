"""What the tools cost a model in counted o200k tokens: no tool grows much, and a new one is short."""

from pathlib import Path

import pytest

from tests.support.tool_count import BRIDGES, list_tools, read_costs

GROWTH = 1.1
NEW_TOKENS = 130
MERCURY_TOKENS = 2_600
"""Without the tools that a setting adds: embeddings and fine-tuning."""
RECOUNT = "count again: python -m tests.support.tool_count"


@pytest.mark.parametrize("bridge", BRIDGES)
def test_the_committed_tokens_are_those_of_the_tools_as_they_are(bridge: str, tmp_path: Path) -> None:
    counted = {name: cost["digest"] for name, cost in read_costs()[bridge].items()}

    assert counted == {name: one.digest for name, one in list_tools(bridge, tmp_path).items()}, RECOUNT


@pytest.mark.parametrize("bridge", BRIDGES)
def test_no_tool_grows_by_more_than_a_tenth_and_a_new_one_is_short(bridge: str) -> None:
    over = {
        name: cost
        for name, cost in read_costs()[bridge].items()
        if cost["tokens"] > (NEW_TOKENS if cost["before"] is None else cost["before"] * GROWTH)
    }

    assert over == {}


def test_the_tools_of_mercury_stay_within_their_total(tmp_path: Path) -> None:
    tokens = {name: cost["tokens"] for name, cost in read_costs()["mercury"].items()}
    listings = list_tools("mercury", tmp_path)

    assert sum(tokens[name] for name, one in listings.items() if not one.is_optional) <= MERCURY_TOKENS
