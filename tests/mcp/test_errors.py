"""Errors: the dialect of a bridge, and bugs whose text stays here."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from bridgehead.mcp import Arguments, Bridge, Context, Dialect, NoArguments, ProtocolError, ToolError
from bridgehead.mcp.errors import INVALID_PARAMS, Failure
from bridgehead.mcp.revisions import REVISIONS, Revision
from tests.support import asking
from tests.support.checked import connect

HIDDEN = "the password is swordfish"


class Number(Arguments):
    number: int


class Closed(Exception):
    """What the far side of the dialect's bridge raises."""


class Terse(Dialect):
    """Says everything as a protocol error, as one of the bridges must."""

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        return ProtocolError(INVALID_PARAMS, f"{tool} cannot take that", {"problem": problem})

    def translate(self, error: Exception) -> Failure | None:
        return ToolError("The far side is closed.") if isinstance(error, Closed) else super().translate(error)

    def bug(self, reference: str) -> Failure:
        return ToolError(f"Sorry ({reference}).")


ENDINGS: dict[str, BaseException] = {
    "exit": SystemExit(HIDDEN),
    "interrupt": KeyboardInterrupt(HIDDEN),
    "cancelled": asyncio.CancelledError(HIDDEN),
    "group": BaseExceptionGroup(HIDDEN, [SystemExit(HIDDEN), ValueError(HIDDEN)]),
}


class Ending(Arguments):
    how: str


def make(dialect: Dialect | None = None) -> Bridge[None]:
    bridge: Bridge[None] = Bridge("errors", "1", dialect=dialect)

    @bridge.tool("Have a bug.")
    def buggy(args: NoArguments, ctx: Context[None]) -> str:
        raise ValueError(HIDDEN)

    @bridge.tool("Have a bug later.")
    async def buggy_later(args: NoArguments, ctx: Context[None]) -> str:
        raise LookupError(HIDDEN)

    @bridge.tool("Answer what cannot be encoded.")
    async def unencodable(args: NoArguments, ctx: Context[None]) -> list[Any]:
        return [HIDDEN, object()]

    @bridge.tool("Find the far side closed.")
    async def closed(args: Number, ctx: Context[None]) -> str:
        raise Closed(HIDDEN)

    @bridge.tool("Refuse with a code.")
    async def refuse(args: NoArguments, ctx: Context[None]) -> str:
        raise ProtocolError(-32007, "Refused.", {"why": "because"})

    @bridge.resource("errors://closed", name="closed")
    async def closed_resource(ctx: Context[None]) -> str:
        raise ToolError("There is nothing to read today.")

    @bridge.prompt("Have a bug.")
    def buggy_prompt(args: NoArguments, ctx: Context[None]) -> str:
        raise RuntimeError(HIDDEN)

    return bridge


def make_ending() -> Bridge[None]:
    bridge: Bridge[None] = Bridge("ending", "1")

    @bridge.tool("Raise what no handler should.")
    def end(args: Ending, ctx: Context[None]) -> str:
        raise ENDINGS[args.how]

    @bridge.tool("Raise it later.")
    async def end_later(args: Ending, ctx: Context[None]) -> str:
        raise ENDINGS[args.how]

    return bridge


def reference_in(text: str) -> str:
    found = re.search(r"\b[0-9a-f]{8}\b", text)
    assert found is not None, text
    return found[0]


async def test_what_cannot_be_encoded_is_told_without_what_was_beside_it() -> None:
    async with connect(make()) as client:
        failed = await client.call("unencodable")

    assert failed["isError"]
    assert "object cannot be written as JSON" in failed["content"][0]["text"]
    assert HIDDEN not in str(failed)


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
@pytest.mark.parametrize("tool", ["buggy", "buggy_later"])
async def test_a_bug_gives_its_reference_and_never_its_text(
    revision: Revision, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(make(), revision=revision) as client:
        failed = await client.call(tool)
        assert not client.connection.in_flight

    assert failed["isError"]
    assert "swordfish" not in str(client.sent)
    record = caplog.records[-1]
    assert reference_in(failed["content"][0]["text"]) in record.getMessage()
    assert (record.name, record.levelname) == ("bridgehead.mcp", "ERROR")
    assert record.exc_info is not None


@pytest.mark.parametrize("tool", ["end", "end_later"])
@pytest.mark.parametrize("how", ENDINGS)
async def test_whatever_a_tool_raises_its_call_is_answered(
    tool: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(make_ending()) as client:
        failed = await client.call(tool, {"how": how})
        assert not client.connection.in_flight

    assert (failed["isError"], reference_in(failed["content"][0]["text"]) in caplog.text) == (True, True)
    assert "swordfish" not in str(client.sent)


async def test_a_bug_in_a_prompt_gives_its_reference_too(caplog: pytest.LogCaptureFixture) -> None:
    async with connect(make()) as client:
        error = await client.error("prompts/get", {"name": "buggy_prompt"})

    assert reference_in(error["message"]) in caplog.text
    assert "swordfish" not in str(error)


async def test_a_protocol_error_goes_out_exactly_as_it_was_raised() -> None:
    async with connect(make()) as client:
        error = await client.error("tools/call", {"name": "refuse"})

    assert error == {"code": -32007, "message": "Refused.", "data": {"why": "because"}}


async def test_a_tool_error_outside_of_a_tool_becomes_an_internal_error_with_its_text() -> None:
    async with connect(make()) as client:
        error = await client.error("resources/read", {"uri": "errors://closed"})

    assert error == {"code": -32603, "message": "There is nothing to read today."}


async def test_a_dialect_words_invalid_arguments_its_own_way() -> None:
    async with connect(make(Terse())) as client:
        error = await client.error("tools/call", {"name": "closed", "arguments": {"number": "one"}})

    assert (error["code"], error["message"]) == (-32602, "closed cannot take that")
    assert "number must be " in error["data"]["problem"]


async def test_a_dialect_translates_the_exceptions_of_its_far_side() -> None:
    async with connect(make(Terse())) as client:
        result = await client.call("closed", {"number": 1})

    assert (result["isError"], result["content"][0]["text"]) == (True, "The far side is closed.")


async def test_a_dialect_words_bugs_its_own_way(caplog: pytest.LogCaptureFixture) -> None:
    async with connect(make(Terse())) as client:
        result = await client.call("buggy")

    assert result["isError"] is True
    assert reference_in(result["content"][0]["text"]) in caplog.text


@pytest.mark.parametrize(
    "failure",
    [
        ToolError("a file named \udcff"),
        ToolError("odd", object()),
        ProtocolError(-32007, "a file named \udcff"),
        ProtocolError(-32007, "odd", object()),
    ],
)
@pytest.mark.parametrize("when", ["at once", "later"])
async def test_a_failure_that_cannot_be_encoded_is_answered_all_the_same(
    failure: Exception, when: str
) -> None:
    bridge: Bridge[None] = Bridge("odd", "1")

    def odd(args: NoArguments, ctx: Context[None]) -> str:
        raise failure

    async def odd_later(args: NoArguments, ctx: Context[None]) -> str:
        raise failure

    bridge.tool("Fail oddly.", name="odd")(odd_later if when == "later" else odd)
    async with connect(bridge) as client:
        if isinstance(failure, ToolError):
            assert "reference" in (await client.call("odd"))["content"][0]["text"]
        else:
            assert (await client.error("tools/call", {"name": "odd"}))["code"] in (-32603, -32007)
        assert not client.connection.in_flight


async def test_meta_that_cannot_be_encoded_is_a_bug_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    from msgspec import Struct

    from bridgehead.mcp import Answer

    class One(Struct):
        one: int = 1

    bridge: Bridge[None] = Bridge("meta", "1")

    @bridge.tool("Answer with what is no JSON.")
    def odd(args: NoArguments, ctx: Context[None]) -> Answer[One]:
        return Answer("one", One(), {"a.example/x": object()})

    async with connect(bridge) as client:
        failed = await client.call("odd")

    assert failed["isError"]
    assert reference_in(failed["content"][0]["text"]) in caplog.text


class Dated(Dialect):
    """Says everything as a protocol error to clients of one revision."""

    def for_revision(self, revision: Revision) -> Dialect:
        return Terse() if revision.name == "2024-11-05" else self


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_a_dialect_may_depend_on_the_clients_revision(revision: Revision) -> None:
    dated: Bridge[None] = Bridge("dated", "1", dialect=Dated())

    @dated.tool("Take a number.")
    def take(args: Number, ctx: Context[None]) -> str:
        return str(args.number)

    params = {"name": "take", "arguments": {"number": "x"}}
    async with connect(dated, revision=revision) as client:
        if revision.name == "2024-11-05":
            assert (await client.error("tools/call", params))["message"] == "take cannot take that"
        else:
            assert (await client.request("tools/call", params))["isError"]


@pytest.mark.parametrize("words", ["two\nlines", "x" * 1_000_000], ids=["lines", "length"])
@pytest.mark.parametrize(
    ("method", "name_params"),
    [
        ("tools/call", lambda words: {"name": words}),
        ("prompts/get", lambda words: {"name": words}),
        ("resources/read", lambda words: {"uri": words}),
        ("tools/list", lambda words: {"cursor": words}),
        ("logging/setLevel", lambda words: {"level": words}),
        ("", lambda _: {}),
    ],
)
async def test_a_message_repeats_a_clients_words_on_one_line_and_not_all_of_a_megabyte(
    method: str, name_params: Callable[[str], dict[str, object]], words: str
) -> None:
    async with connect(asking.make_bridge()) as client:
        with pytest.raises(ProtocolError) as refused:
            await client.request(method or words, name_params(words))

    assert words[:3] in refused.value.message
    assert "\n" not in refused.value.message
    assert len(refused.value.message) < 500
