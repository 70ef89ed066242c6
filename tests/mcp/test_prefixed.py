"""Prefixed bridges: every tool is listed, called and spoken of by its longer name; content stays as it is."""

from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from bridgehead.mcp import (
    Answer,
    Bridge,
    Context,
    DeclarationError,
    Invocation,
    ProtocolError,
    ToolError,
    combine,
    prefix_tools,
    restrict,
)
from tests.support.checked import connect


class Nearest(Struct):
    advice: str
    tools: list[str]


def make_library(**options: Any) -> Bridge[None]:
    bridge: Bridge[None] = Bridge(
        "library", "1", instructions="Find with find_book, then call lend_book.", **options
    )

    @bridge.tool("Find a book; lend_book lends it. Not for find_books or ns.find_book or find_book.js.")
    def find_book(title: Annotated[str, Meta(description="As lend_book takes it")]) -> Answer[dict[str, str]]:
        return Answer(
            f"lend_book says {title}",
            {"title": title, "said": "find_book"},
            notes=("lend_book is quick.",),
            next=("Call lend_book.",),
        )

    @bridge.tool
    async def lend_book(title: str) -> Answer[None]:
        """Lend a book that find_book found."""
        if title == "gone":
            raise ToolError("Gone: ask find_book.", Nearest("Ask find_book.", ["find_book"]))
        if title == "closed":
            raise ProtocolError(-32050, "Closed: ask find_book.", {"next": "find_book"})
        return Answer("lent", notes=("find_book finds others.",))

    @bridge.prompt
    def read_aloud(text: Annotated[str, Meta(description="What find_book gave")]) -> str:
        """Read what find_book found."""
        return f"Call find_book, then read:\n{text}\n```\nfind_book()\n```\nand lend_book."

    @bridge.resource("library://rules", name="Rules", description="What lend_book keeps to.")
    def rules(ctx: Context[None]) -> str:
        return "find_book is not for children"

    @bridge.template("library://shelf/{number}", name="Shelf", description="What find_book looks through.")
    def shelf(variables: dict[str, str], ctx: Context[None]) -> str:
        raise ToolError("Empty: ask find_book.")

    return bridge


async def test_tools_are_listed_and_called_by_their_prefixed_names_only() -> None:
    async with connect(prefix_tools(make_library(), "lib_")) as client:
        listed = await client.request("tools/list")
        lent = await client.text("lib_lend_book", {"title": "x"})
        unknown = await client.error("tools/call", {"name": "lend_book", "arguments": {}})

    assert [tool["name"] for tool in listed["tools"]] == ["lib_find_book", "lib_lend_book"]
    assert lent == "lent"
    assert unknown["message"] == "Unknown tool: lend_book"
    assert unknown["data"] == {"tools": ["lib_find_book", "lib_lend_book"]}


async def test_every_text_about_the_tools_uses_the_prefixed_names() -> None:
    async with connect(prefix_tools(make_library(), "lib_")) as client:
        find, lend = (await client.request("tools/list"))["tools"]
        instructions = client.sent[0]["result"]["instructions"]
        (prompt,) = (await client.request("prompts/list"))["prompts"]
        (rules,) = (await client.request("resources/list"))["resources"]
        (shelf,) = (await client.request("resources/templates/list"))["resourceTemplates"]

    assert instructions == "Find with lib_find_book, then call lib_lend_book."
    # Whole words only: neither a longer word nor a member nor a file is the tool.
    assert find["description"] == (
        "Find a book; lib_lend_book lends it. Not for find_books or ns.find_book or find_book.js."
    )
    assert find["inputSchema"]["properties"]["title"]["description"] == "As lib_lend_book takes it"
    assert lend["description"] == "Lend a book that lib_find_book found."
    assert prompt["description"] == "Read what lib_find_book found."
    assert prompt["arguments"][0]["description"] == "What lib_find_book gave"
    assert rules["description"] == "What lib_lend_book keeps to."
    assert shelf["description"] == "What lib_find_book looks through."


async def test_notes_and_next_steps_are_reworded_and_the_answer_itself_is_not() -> None:
    async with connect(prefix_tools(make_library(), "lib_")) as client:
        found = await client.call("lib_find_book", {"title": "find_book"})
        lent = await client.call("lib_lend_book", {"title": "x"})

    assert [block["text"] for block in found["content"]] == [
        "lend_book says find_book",
        "Note: lib_lend_book is quick.\nNext: Call lib_lend_book.",
    ]
    assert found["structuredContent"] == {
        "title": "find_book",
        "said": "find_book",
        "notes": ["lib_lend_book is quick."],
        "next": ["Call lib_lend_book."],
    }
    assert lent["content"][1]["text"] == "Note: lib_find_book finds others."


async def test_failures_use_the_prefixed_names_in_their_text_and_structure() -> None:
    async with connect(prefix_tools(make_library(), "lib_")) as client:
        gone = await client.call("lib_lend_book", {"title": "gone"})
        closed = await client.error("tools/call", {"name": "lib_lend_book", "arguments": {"title": "closed"}})
        refused = await client.call("lib_find_book", {"title": 5})
        unread = await client.error("resources/read", {"uri": "library://shelf/1"})

    assert gone["content"][0]["text"] == "Gone: ask lib_find_book."
    assert gone["structuredContent"] == {"advice": "Ask lib_find_book.", "tools": ["lib_find_book"]}
    assert closed["message"] == "Closed: ask lib_find_book."
    assert closed["data"] == {"next": "lib_find_book"}
    assert refused["content"][0]["text"].startswith("Invalid arguments for lib_find_book: ")
    assert unread["message"] == "Empty: ask lib_find_book."


async def test_a_prompt_keeps_what_the_client_gave_it_and_code_in_fences() -> None:
    async with connect(prefix_tools(make_library(), "lib_")) as client:
        got = await client.request(
            "prompts/get", {"name": "read_aloud", "arguments": {"text": "my lend_book"}}
        )

    assert got["messages"][0]["content"]["text"] == (
        "Call lib_find_book, then read:\nmy lend_book\n```\nfind_book()\n```\nand lib_lend_book."
    )


async def test_what_a_resource_holds_stays_as_it_is_unless_it_is_a_page_that_calls_tools(
    tmp_path: Any,
) -> None:
    bridge = make_library()
    (tmp_path / "page.html").write_text('<script>host.call("find_book", {})</script>')
    bridge.app("ui://library/page", str(tmp_path / "page.html"), name="Page")
    async with connect(prefix_tools(bridge, "lib_")) as client:
        rules = await client.request("resources/read", {"uri": "library://rules"})
        page = await client.request("resources/read", {"uri": "ui://library/page"})

    assert rules["contents"][0]["text"] == "find_book is not for children"
    assert page["contents"][0]["text"] == '<script>host.call("lib_find_book", {})</script>'


async def test_hooks_see_the_declared_name() -> None:
    bridge, seen = make_library(), []

    def note(call: Invocation, run: Any) -> Any:
        seen.append(call.name)
        return run()

    bridge.around_calls(note)
    async with connect(prefix_tools(bridge, "lib_")) as client:
        await client.call("lib_lend_book", {"title": "x"})

    assert seen == ["lend_book"]


async def test_bridges_with_one_tool_of_the_same_name_can_be_combined_under_different_prefixes() -> None:
    first, second = make_library(), make_library()
    second.prompts.clear()
    second.resources.clear()
    second.templates.clear()
    with pytest.raises(ValueError, match="declared twice"):
        combine("both", "1", [first, second])

    async with connect(
        combine("both", "1", [prefix_tools(first, "a_"), prefix_tools(second, "b-")])
    ) as client:
        listed = await client.request("tools/list")
        gone = [await client.text(name, {"title": "gone"}) for name in ("a_lend_book", "b-lend_book")]

    assert [tool["name"] for tool in listed["tools"]] == [
        "a_find_book",
        "a_lend_book",
        "b-find_book",
        "b-lend_book",
    ]
    assert gone == ["Gone: ask a_find_book.", "Gone: ask b-find_book."]


async def test_a_tool_that_is_not_offered_is_still_spoken_of_by_its_prefixed_name() -> None:
    part = restrict(make_library(), lambda tool: tool.name == "lend_book")
    async with connect(prefix_tools(part, "lib_")) as client:
        (lend,) = (await client.request("tools/list"))["tools"]

    assert lend["description"] == "Lend a book that lib_find_book found."


async def test_a_name_that_begins_with_the_prefix_already_stays() -> None:
    bridge: Bridge[None] = Bridge("library", "1", instructions="Call library_find and lend.")
    bridge.tool("Finds; see lend.", name="library_find")(lambda: "found")
    bridge.tool("Lends; see library_find.", name="lend")(lambda: "lent")
    async with connect(prefix_tools(bridge, "library_")) as client:
        listed = (await client.request("tools/list"))["tools"]
        instructions = client.sent[0]["result"]["instructions"]

    assert [(tool["name"], tool["description"]) for tool in listed] == [
        ("library_find", "Finds; see library_lend."),
        ("library_lend", "Lends; see library_find."),
    ]
    assert instructions == "Call library_find and library_lend."


def test_without_a_prefix_the_bridge_itself_is_served() -> None:
    bridge = make_library()

    assert prefix_tools(bridge, "") is bridge


@pytest.mark.parametrize("prefix", ["1st_", "-x", "a b", "a.", "ä_", "a\n"])
def test_a_prefix_that_clients_reject_is_refused(prefix: str) -> None:
    with pytest.raises(DeclarationError, match="Use letters, digits, _ and -"):
        prefix_tools(make_library(), prefix)


def test_a_prefix_is_refused_if_a_name_would_be_too_long() -> None:
    prefix_tools(make_library(), "x" * 55)
    with pytest.raises(DeclarationError, match=r"the tool find_book has 65 characters.*at most 55"):
        prefix_tools(make_library(), "x" * 56)
