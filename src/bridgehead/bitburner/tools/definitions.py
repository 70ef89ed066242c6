"""Definitions: the tools that return the game's definitions, whole or by search."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context, NoArguments, Text

from ..netscript.definitions import Declaration, Definitions
from ..session import Session
from .declaring import MAX_QUERY, ToolDeclarer

_MAX_SHOWN = 4000
"""Characters shown of one declaration; some are objects with hundreds of fields."""
_MAX_BODY = 40_000


class SearchDefinitions(Arguments):
    """Input of search_definitions."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_QUERY,
            description="Symbols such as ns.hack, Singularity or a list of them, or words",
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=50, description="Default 3, up to 50")] = 3


class Definition(Struct):
    """A declaration with its comment."""

    symbol: str
    line: int
    text: str


class FoundDefinitions(Struct):
    """Output of search_definitions."""

    definitions: list[Definition]
    total: int
    near: list[str] = []
    more: list[str] = []
    """The names of the next best ones."""


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "Get Netscript definitions",
        "The Bitburner game's whole TypeScript definition file, about 335 KB. Use search_definitions "
        "instead, unless all of it is needed.",
    )(get_netscript_definitions)
    tools.read_tool(
        "Search definitions",
        "Find functions and types of the Bitburner game's API (Netscript, ns.…) by symbol or words. "
        "Answers declarations with their comments, which tell RAM costs; for an interface, its whole body.",
    )(search_definitions)


async def get_netscript_definitions(_: NoArguments, ctx: Context[Session]) -> list[Text]:
    """Return the whole file, as text alone: in structured content too, it would be sent twice."""
    text, note = await ctx.state.load_definitions()
    # Without structured content, every client shows all blocks.
    return [Text(text), Text(f"Note: {note}")] if note else [Text(text)]


async def search_definitions(args: SearchDefinitions, ctx: Context[Session]) -> Answer[FoundDefinitions]:
    """Find declarations."""
    index = await ctx.state.load_index()
    result = index.search.find(args.query, args.limit)
    notes = (index.note,) if index.note else ()
    if not result.declarations:
        near = f" Like it: {', '.join(result.near)}." if result.near else ""
        text = f"Nothing in the definitions fits {args.query!r}.{near}"
        return Answer(text, FoundDefinitions([], 0, result.near), notes=notes)
    # An interface that is named exactly is shown with all members; a search result only with its own text.
    exact = args.query.strip().removesuffix("()").lower()
    shown = []
    for declaration in result.declarations:
        is_whole = declaration.symbol.lower() == exact and declaration.symbol in index.definitions.members
        text = _list_members(declaration, index.definitions) if is_whole else shorten(declaration)
        shown.append(Definition(index.search.name_of(declaration), declaration.line, text))
    text = "\n\n".join(
        f"// {definition.symbol} (line {definition.line})\n{definition.text}" for definition in shown
    )
    more = [index.search.name_of(declaration) for declaration in result.rest]
    if more:
        text += f"\n\nAlso: {', '.join(more)}."
    return Answer(text, FoundDefinitions(shown, result.total, more=more), notes=notes)


def _list_members(declaration: Declaration, definitions: Definitions) -> str:
    """Render an interface with every member, each with its cost instead of its comment."""
    lines = [f"// {declaration.summary}"] if declaration.summary else []
    lines.append(declaration.signature.partition("{")[0].strip() + " {")
    for member in definitions.members[declaration.symbol].values():
        signature = " ".join(member.signature.split()).removesuffix(";")
        cost = f"  // {member.ram:g} GB{' × 16/4/1' if member.is_scaled else ''}" if member.ram else ""
        lines.append(f"  {signature};{cost}")
    text = "\n".join([*lines, "}"])
    if len(text) <= _MAX_BODY:
        return text
    return f"{text[:_MAX_BODY]}\n… {len(text) - _MAX_BODY} more characters"


def shorten(declaration: Declaration) -> str:
    """Return a declaration's text, cut if it is very long."""
    if len(declaration.text) <= _MAX_SHOWN:
        return declaration.text
    return f"{declaration.text[:_MAX_SHOWN]}\n… {len(declaration.text) - _MAX_SHOWN} more characters"
