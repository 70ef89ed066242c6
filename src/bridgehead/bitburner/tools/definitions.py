"""Documentation: the tools that give the game's definitions, whole or the part that is looked for."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context, NoArguments

from ..game.definitions import Definitions, Entry
from ..session import Session
from .declaring import ToolDeclarer

_LONGEST = 4000
"""Characters of one entry that are shown; the longest are objects with hundreds of fields."""


class NetscriptDefinitions(Struct):
    """Output of get_netscript_definitions."""

    definitions: str


class SearchDefinitions(Arguments):
    """Input of search_definitions."""

    query: Annotated[
        str, Meta(min_length=1, description="A symbol such as hack or Singularity.connect, or a text")
    ]
    limit: Annotated[int, Meta(ge=1, le=50)] = 8


class Definition(Struct):
    """A declaration with its comment."""

    symbol: str
    line: int
    text: str


class FoundDefinitions(Struct):
    """Output of search_definitions."""

    definitions: list[Definition]
    total: int


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "Get Netscript definitions",
        "The game's whole TypeScript definition file, about 335 KB. Use search_definitions instead, unless "
        "all of it is needed.",
    )(get_netscript_definitions)
    tools.read_tool(
        "Search definitions",
        "Find functions and types of the game's API (Netscript, ns.…) by symbol or text. Answers "
        "declarations with their comments, which tell RAM costs.",
    )(search_definitions)


async def get_netscript_definitions(_: NoArguments, ctx: Context[Session]) -> Answer[NetscriptDefinitions]:
    """Give the whole file."""
    text = await ctx.state.remote.get_definitions()
    return Answer(text, NetscriptDefinitions(text))


async def search_definitions(args: SearchDefinitions, ctx: Context[Session]) -> Answer[FoundDefinitions]:
    """Find declarations."""
    found, total = (await index_definitions(ctx.state)).find(args.query, args.limit)
    shown = [Definition(entry.symbol, entry.line, shorten_entry(entry)) for entry in found]
    text = "\n\n".join(f"// {one.symbol} (line {one.line})\n{one.text}" for one in shown)
    if total > len(shown):
        text += f"\n\n… {total - len(shown)} more; ask for something narrower, or raise limit."
    return Answer(text or f"Nothing in the definitions fits {args.query!r}.", FoundDefinitions(shown, total))


async def index_definitions(session: Session) -> Definitions:
    """Return the definitions of the connected game, cut into entries once a connection."""
    text = await session.remote.get_definitions()
    memory = (await session.board.require_link()).memory
    if memory.get("indexed") is not text:
        memory["index"], memory["indexed"] = Definitions(text), text
    found: Definitions = memory["index"]
    return found


def shorten_entry(entry: Entry) -> str:
    """Give an entry's text, cut where it is very long."""
    if len(entry.text) <= _LONGEST:
        return entry.text
    return f"{entry.text[:_LONGEST]}\n… {len(entry.text) - _LONGEST} more characters"
