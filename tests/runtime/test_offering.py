"""Offering: which tools pass a rule."""

import pytest

from bridgehead.mcp import Bridge, Context, NoArguments
from bridgehead.runtime.offering import Offering, OfferingSettings

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
        (Offering(), ["look", "buy", "break_it"]),
        (Offering(read_only=True), ["look"]),
        (Offering(allow=("b*",)), ["buy", "break_it"]),
        (Offering(deny=("*_it",)), ["look", "buy"]),
        (Offering(allow=("buy",), deny=("buy",)), []),
        (Offering(read_only=True, allow=("buy",)), []),
        (Offering(allow=("BUY",)), []),
    ],
)
def test_a_rule_lets_through_what_it_says(rule: Offering, passing: list[str]) -> None:
    assert [name for name, tool in bridge.tools.items() if rule(tool)] == passing


def test_settings_make_the_rule() -> None:
    settings = OfferingSettings({"BRIDGEHEAD_READ_ONLY": "yes", "BRIDGEHEAD_DENY_TOOLS": "a, b*"})
    assert settings.offering == Offering(read_only=True, allow=(), deny=("a", "b*"))
    assert OfferingSettings({}).offering.is_everything
    assert not settings.offering.is_everything
