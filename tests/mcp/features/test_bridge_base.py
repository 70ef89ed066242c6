"""BridgeBase: what a part has from its bridge, and how a server describes itself to each revision."""

from typing import Any

from bridgehead.mcp.calls.call_hook import CallHook
from bridgehead.mcp.features.bridge_base import BridgeBase, Implementation
from bridgehead.mcp.revisions import V2024_11_05, V2025_11_25
from bridgehead.mcp.values.content import Icon

INFO = Implementation(
    "greeter",
    "1",
    title="Greeter",
    description="Greets.",
    website_url="https://example.org",
    icons=(Icon("https://example.org/i.png"),),
)


def test_a_revision_hears_only_what_it_defines() -> None:
    assert INFO.fit(V2025_11_25) == INFO
    assert INFO.fit(V2024_11_05) == Implementation("greeter", "1")


def test_the_hook_that_was_added_last_comes_first() -> None:
    bridge: Any = BridgeBase(INFO, None, None, None)
    order = []

    def hook(name: str) -> CallHook:
        def run(_call: Any, go_on: Any) -> Any:
            order.append(name)
            return go_on()

        return run

    bridge.around_calls(hook("first"))
    bridge.around_calls(hook("second"))
    assert bridge.call_hook(None, lambda: "done") == "done"
    assert order == ["second", "first"]
