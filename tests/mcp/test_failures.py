"""Failures: a dialect that cannot word one does not keep a call from being answered."""

import logging

import pytest

from bridgehead.mcp import Bridge, Context, Dialect, NoArguments, ProtocolError, ToolError
from bridgehead.mcp.errors import Failure
from tests.support.checked import connect


class BrokenDialect(Dialect):
    """Fails while it words a failure."""

    def translate(self, error: Exception) -> Failure | None:
        raise ZeroDivisionError(str(error))


async def test_a_dialect_that_fails_itself_is_a_bug_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    bridge: Bridge[None] = Bridge("broken", "1", dialect=BrokenDialect())

    @bridge.tool("Fail.")
    def fail(_args: NoArguments, ctx: Context[None]) -> str:
        raise ToolError("secret")

    async with connect(bridge) as client:
        with caplog.at_level(logging.ERROR):
            failed = await client.call("fail")

    assert failed["isError"]
    assert "reference" in failed["content"][0]["text"]
    assert "secret" not in str(failed)
    assert "ZeroDivisionError" in caplog.text


async def test_a_refusal_is_logged_with_a_bounded_part_of_its_words(caplog: pytest.LogCaptureFixture) -> None:
    bridge: Bridge[None] = Bridge("strict", "1")

    @bridge.tool("Refuse.")
    def refuse(_args: NoArguments, ctx: Context[None]) -> str:
        raise ProtocolError(-32000, "x" * 1000)

    async with connect(bridge) as client:
        with caplog.at_level(logging.INFO, "bridgehead.mcp"), pytest.raises(ProtocolError):
            await client.call("refuse")

    assert "x" * 300 in caplog.text
    assert "x" * 301 not in caplog.text


async def test_an_error_for_the_model_outside_of_a_tool_is_one_of_the_protocol() -> None:
    bridge: Bridge[None] = Bridge("reader", "1")

    @bridge.resource("a://b", name="b")
    def read(ctx: Context[None]) -> str:
        raise ToolError("Not today.")

    async with connect(bridge) as client:
        error = await client.error("resources/read", {"uri": "a://b"})

    assert (error["code"], error["message"]) == (-32603, "Not today.")
