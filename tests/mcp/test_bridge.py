"""The bridge: what it declares is offered, once, and nothing else is."""

from typing import Any

import pytest

from bridgehead.mcp import Bridge, Context, NoArguments
from tests.support.checked import STATELESS, connect


def answer(args: NoArguments, ctx: Context[None]) -> str:
    return "x"


def read(ctx: Context[None]) -> str:
    return "x"


def read_template(variables: dict[str, str], ctx: Context[None]) -> str:
    return "x"


def declare(bridge: Bridge[None], what: str) -> None:
    declarations: dict[str, Any] = {
        "tools": lambda: bridge.tool("Do.")(answer),
        "prompts": lambda: bridge.prompt("Ask.")(answer),
        "resources": lambda: bridge.resource("b://a", name="a")(read),
        "templates": lambda: bridge.template("b://{a}", name="a")(read_template),
    }
    declarations[what]()


@pytest.mark.parametrize("what", ["tools", "prompts", "resources", "templates"])
def test_nothing_can_be_declared_twice(what: str) -> None:
    bridge: Bridge[None] = Bridge("twice", "1")
    declare(bridge, what)
    with pytest.raises(ValueError, match="is declared twice"):
        declare(bridge, what)


@pytest.mark.parametrize("what", ["tools", "prompts", "resources", "templates"])
async def test_only_what_is_declared_is_offered(what: str) -> None:
    bridge: Bridge[None] = Bridge("one", "1", logging=False)
    declare(bridge, what)
    offered: dict[str, Any] = {"resources" if what == "templates" else what: {}}
    async with connect(bridge) as client, connect(bridge, revision=STATELESS) as stateless:
        assert client.sent[0]["result"]["capabilities"] == offered
        assert (await stateless.request("server/discover"))["capabilities"] == offered


async def test_a_bridge_without_anything_can_still_be_greeted() -> None:
    async with connect(Bridge("empty", "1", logging=False)) as client:
        assert client.sent[0]["result"]["capabilities"] == {}
        assert await client.request("ping") == {}
