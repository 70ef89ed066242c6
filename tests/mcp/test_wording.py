"""Wording: no text of a bridge names a tool that is not offered, and all else is said as before."""

from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct
from msgspec.structs import replace

from bridgehead.mcp import (
    Answer,
    Bridge,
    Context,
    Invocation,
    ProtocolError,
    ToolError,
    combine,
    hide_tools,
    observe_calls,
    prefix_tools,
    restrict,
)
from bridgehead.mcp.wording import Wording
from tests.support.checked import connect

WORDING = Wording({"find_book": "find_book", "lend_book": None, "burn_book": None, "search": None})


class Advice(Struct):
    message: str
    next_step: str
    tools: list[str]


def make_library() -> Bridge[None]:
    bridge: Bridge[None] = Bridge(
        "library", "1", instructions="Books of a town. find_book finds one; lend_book lends it."
    )

    @bridge.tool("Find a book. Lend it with lend_book.", read_only=True)
    def find_book(
        title: Annotated[str, Meta(description="As lend_book takes it")],
        town: Annotated[str, Meta(description="Where it is")] = "Rome",
    ) -> Answer[dict[str, str]]:
        return Answer(
            "Found; see lend_book.",
            {"said": "lend_book"},
            notes=("One page is missing; lend_book says which.",),
            next=("Call lend_book.", "Read it."),
        )

    @bridge.tool
    async def ask(title: str) -> str:
        """Ask for a book."""
        if title == "json":
            raise ToolError('{"error":{"message":"Gone. Call lend_book.","code":1,"content":"lend_book"}}')
        if title == "closed":
            raise ProtocolError(-32050, "Closed. Call lend_book.", {"next": ["lend_book", "find_book"]})
        raise ToolError("No lend_book here. Call lend_book.", Advice("Gone.", "Call lend_book.", ["ask"]))

    @bridge.tool
    def lend_book(title: str) -> str:
        """Lend a book."""
        return "lent"

    @bridge.prompt
    def read_aloud(text: Annotated[str, Meta(description="What lend_book gave")]) -> str:
        """Read a book. lend_book lends it."""
        return f"Read:\n{text}\n- lend_book lends it. It is free.\n- Speak up.\n```\nlend_book()\n```"

    @bridge.resource("library://rules", name="Rules", description="The rules. lend_book keeps to them.")
    def rules(ctx: Context[None]) -> str:
        return "lend_book is not for children"

    return bridge


def is_offered(tool: Any) -> bool:
    return bool(tool.name != "lend_book")


def say_why(_tool: Any) -> str:
    return "LIBRARY_MODE=reading hides it."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Find with find_book.", "Find with find_book."),
        ("First. Call lend_book. Last.", "First. Last."),
        ("First! lend_book lends. find_book finds.", "First! find_book finds."),
        ("It is kept; lend_book gives it. Last.", "It is kept. Last."),
        ("Either lend_book; or keep it.", "Or keep it."),
        ("One; lend_book two; three.", "One; three."),
        ("One. lend_book two; burn_book three. Four.", "One. Four."),
        ("Version 1.5 is e.g. old. Call lend_book", "Version 1.5 is e.g. old."),
        ("Not lend_books, ns.lend_book, lend_book.js or my-lend_book.", None),
        ("A sentence goes\non with lend_book here. Next.", "Next."),
        ("A line.\nlend_book is one.\nAnother.", "A line.\nAnother."),
        ("Steps:\n1. Call lend_book. Wait.\n2. Read it.", "Steps:\n2. Read it."),
        ("A.\n\nlend_book.\n\nB.", "A.\n\nB."),
        ("A. Call lend_book.\n\nB.", "A.\n\nB."),
        ("See:\n```\nlend_book(). Burn.\n```\nDone.", None),
        ("To search for it is fine.", None),
        ("It is fine. Use `search` here.", "It is fine."),
        ("", ""),
        ("Call lend_book.", ""),
    ],
)
def test_a_sentence_that_names_a_hidden_tool_is_left_out(text: str, expected: str | None) -> None:
    assert WORDING.reword(text) == (text if expected is None else expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lend_book failed. Call burn_book. Or wait.", "lend_book failed. Or wait."),
        ("Nothing is lent; lend_book lends.", "Nothing is lent."),
    ],
)
def test_a_first_sentence_that_has_to_stay_stays(text: str, expected: str) -> None:
    assert WORDING.reword(text, keep_first=True) == expected


def test_content_in_a_text_stays_and_ends_no_sentence() -> None:
    given = "lend_book. And more"

    assert WORDING.reword(f"Read {given} aloud. Then lend_book.", [given]) == f"Read {given} aloud."


async def test_what_is_listed_names_only_offered_tools() -> None:
    async with connect(restrict(make_library(), is_offered)) as client:
        find, ask = (await client.request("tools/list"))["tools"]
        (prompt,) = (await client.request("prompts/list"))["prompts"]
        (rules,) = (await client.request("resources/list"))["resources"]

    assert client.sent[0]["result"]["instructions"] == "Books of a town. find_book finds one."
    assert find["description"] == "Find a book."
    assert "description" not in find["inputSchema"]["properties"]["title"]
    assert find["inputSchema"]["properties"]["town"]["description"] == "Where it is"
    assert ask["name"] == "ask"
    assert prompt["description"] == "Read a book."
    assert "description" not in prompt["arguments"][0]
    assert rules["description"] == "The rules."


async def test_what_is_said_while_it_runs_names_only_offered_tools() -> None:
    async with connect(restrict(make_library(), is_offered)) as client:
        found = await client.call("find_book", {"title": "x"})
        advice = await client.call("ask", {"title": "x"})
        json = await client.text("ask", {"title": "json"})
        closed = await client.error("tools/call", {"name": "ask", "arguments": {"title": "closed"}})
        aloud = await client.request(
            "prompts/get", {"name": "read_aloud", "arguments": {"text": "a lend_book. More"}}
        )
        rules = await client.request("resources/read", {"uri": "library://rules"})

    # The answer itself is content.
    assert found["content"][0]["text"] == "Found; see lend_book."
    assert found["structuredContent"] == {
        "said": "lend_book",
        "notes": ["One page is missing."],
        "next": ["Read it."],
    }
    assert advice["content"][0]["text"] == "No lend_book here."
    assert advice["structuredContent"] == {"message": "Gone.", "next_step": "", "tools": ["ask"]}
    # What had arrived of an answer is content, too.
    assert json == '{"error":{"message":"Gone.","code":1,"content":"lend_book"}}'
    assert (closed["message"], closed["data"]) == ("Closed.", {"next": ["find_book"]})
    assert (
        aloud["messages"][0]["content"]["text"]
        == "Read:\na lend_book. More\n- Speak up.\n```\nlend_book()\n```"
    )
    assert rules["contents"][0]["text"] == "lend_book is not for children"


async def test_a_note_that_a_hook_adds_names_only_offered_tools() -> None:
    bridge = make_library()

    def add_note(_call: Invocation, answer: Any) -> Any:
        return replace(answer, notes=(*answer.notes, "It rains. lend_book waits; find_book is open."))

    bridge.around_calls(observe_calls(lambda *_: None, extend=add_note))
    async with connect(prefix_tools(restrict(bridge, is_offered), "lib_")) as client:
        found = await client.call("lib_find_book", {"title": "x"})

    assert found["structuredContent"]["notes"] == [
        "One page is missing.",
        "It rains. lib_find_book is open.",
    ]


async def test_a_hidden_tool_is_unknown_and_the_refusal_says_what_hides_it() -> None:
    bridge = make_library()
    hide_tools(bridge, is_offered, say_why)
    async with connect(bridge) as client:
        hidden = await client.error("tools/call", {"name": "lend_book", "arguments": {"title": "x"}})
        unknown = await client.error("tools/call", {"name": "lend_books", "arguments": {}})

    assert hidden["message"] == "Unknown tool: lend_book. LIBRARY_MODE=reading hides it."
    assert hidden["data"] == {"tools": ["find_book", "ask"]}
    assert unknown["message"] == "Unknown tool: lend_books"


async def test_a_bridge_that_hides_tools_can_be_restricted_prefixed_and_combined() -> None:
    bridge = make_library()
    hide_tools(bridge, is_offered, say_why)
    part = restrict(bridge, lambda tool: tool.name != "ask", lambda _tool: "It is shy.")
    async with connect(combine("both", "1", [prefix_tools(part, "lib_")])) as client:
        (find,) = (await client.request("tools/list"))["tools"]
        hidden = [
            (await client.error("tools/call", {"name": name, "arguments": {}}))["message"]
            for name in ("lib_lend_book", "lib_ask")
        ]
        found = await client.call("lib_find_book", {"title": "x"})

    assert client.sent[0]["result"]["instructions"] == "library: Books of a town. lib_find_book finds one."
    assert (find["name"], find["description"]) == ("lib_find_book", "Find a book.")
    assert hidden == [
        "Unknown tool: lib_lend_book. LIBRARY_MODE=reading hides it.",
        "Unknown tool: lib_ask. It is shy.",
    ]
    assert found["structuredContent"]["notes"] == ["One page is missing."]


def test_a_bridge_that_hides_nothing_is_left_as_it_is() -> None:
    bridge = make_library()
    before = dict(bridge.tools)
    hide_tools(bridge, lambda _tool: True)

    assert bridge.tools == before
    assert bridge.hidden == {}
