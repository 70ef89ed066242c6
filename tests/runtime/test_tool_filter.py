"""Offering: which tools pass a rule."""

import pytest

from bridgehead.mcp import Bridge, Context, NoArguments
from bridgehead.runtime.tool_filter import ToolFilter, ToolFilterSettings, find_unmatched

bridge: Bridge[None] = Bridge("shop", "1")


@bridge.tool("Looks.", read_only=True)
def look(args: NoArguments, ctx: Context[None]) -> str:
    return "a shop"


@bridge.tool("Buys.")
def buy(args: NoArguments, ctx: Context[None]) -> str:
    return "bought"


@bridge.tool("Breaks.", destructive=True)
def break_it(args: NoArguments, ctx: Context[None]) -> str:
    return "broken"


@pytest.mark.parametrize(
    ("rule", "passing"),
    [
        (ToolFilter(), ["look", "buy", "break_it"]),
        (ToolFilter(read_only=True), ["look"]),
        (ToolFilter(allow=("b*",)), ["buy", "break_it"]),
        (ToolFilter(deny=("*_it",)), ["look", "buy"]),
        (ToolFilter(allow=("buy",), deny=("buy",)), []),
        (ToolFilter(read_only=True, allow=("buy",)), []),
        (ToolFilter(allow=("BUY",)), []),
    ],
)
def test_a_rule_lets_through_what_it_says(rule: ToolFilter, passing: list[str]) -> None:
    assert [name for name, tool in bridge.tools.items() if rule(tool)] == passing


def test_settings_make_the_rule() -> None:
    settings = ToolFilterSettings({"BRIDGEHEAD_READ_ONLY": "yes", "BRIDGEHEAD_DENY_TOOLS": "a, b*"})
    assert settings.tool_filter == ToolFilter(read_only=True, allow=(), deny=("a", "b*"))
    assert ToolFilterSettings({}).tool_filter.is_everything
    assert not settings.tool_filter.is_everything


def test_a_pattern_that_matches_no_tool_is_reported_with_the_one_that_was_meant() -> None:
    settings = ToolFilterSettings(
        {"BRIDGEHEAD_ALLOW_TOOLS": "read_*,nothing_at_all", "BRIDGEHEAD_DENY_TOOLS": "delete_fil"}
    )
    names = ("read_file", "delete_file")

    assert find_unmatched(settings, names) == [
        "BRIDGEHEAD_ALLOW_TOOLS: no tool is called 'nothing_at_all'. `bridgehead tools` lists them.",
        "BRIDGEHEAD_DENY_TOOLS: no tool is called 'delete_fil'. Did you mean 'delete_file'?",
    ]
    assert len(find_unmatched(settings, names, only_misspelt=True)) == 1
