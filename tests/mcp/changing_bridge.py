"""A bridge whose lists and resources change, and what a client is told of it."""

from typing import Any

from bridgehead.mcp import Bridge, Context, NoArguments
from tests.support.checked import CheckedClient

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["c://a", "c://b"],
}


def make(**options: Any) -> Bridge[None]:
    settings = {"changing": {"tools", "prompts", "resources"}, "subscribable": True, **options}
    bridge: Bridge[None] = Bridge("changes", "1", **settings)

    @bridge.tool("Be there.")
    def tool(args: NoArguments, ctx: Context[None]) -> str:
        return "there"

    @bridge.prompt("Be there.")
    def prompt(args: NoArguments, ctx: Context[None]) -> str:
        return "there"

    @bridge.resource("c://a", name="a")
    def resource(ctx: Context[None]) -> str:
        return "there"

    return bridge


def change_all(bridge: Bridge[None]) -> None:
    bridge.changed.tools()
    bridge.changed.prompts()
    bridge.changed.resources()
    for uri in ("c://a", "c://b", "c://c"):
        bridge.changed.resource(uri)


def received_changes(client: CheckedClient) -> list[Any]:
    """Give what the client was told of changes, without the acknowledgement."""
    return [
        (message["method"], message.get("params", {}).get("uri"))
        for message in client.sent
        if message.get("method") in (TOOLS, PROMPTS, RESOURCES, UPDATED)
    ]
