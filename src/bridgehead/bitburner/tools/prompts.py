"""Prompts: writing a script and slimming one, with the definitions that matter brought along."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bridgehead.mcp import Arguments, Bridge, Context

from ..game import paths
from ..game.definitions import Definitions, Entry
from ..session import Session
from . import resources
from .definitions import index_definitions, shorten_entry
from .ram import format_cost, measure_cost

_MOST_ENTRIES = 12
_MOST_CHARACTERS = 20_000
_LEAST_LETTERS = 4
_BASICS = {"main", "args", "print", "tprint", "sleep"}


class WriteScript(Arguments):
    """Input of write_script."""

    goal: Annotated[str, Meta(min_length=1, description="What the script shall do")]
    filename: Annotated[str, Meta(description="Where to write it")] = "script.js"


class SlimScript(Arguments):
    """Input of slim_script."""

    filename: Annotated[str, Meta(min_length=1, description="The script that costs too much RAM")]
    server: Annotated[str, Meta(description="The server it is on")] = paths.HOME


def declare(bridge: Bridge[Session]) -> None:
    """Declare the prompts and their completions."""
    bridge.prompt(
        "Write a Netscript script, with the definitions that fit the goal.", title="Write a script"
    )(write_script)
    bridge.prompt(
        "Lower the RAM cost of a script, with the definitions of all it calls.", title="Slim a script"
    )(slim_script)
    bridge.complete_prompt("slim_script", "filename")(resources.complete_path)
    bridge.complete_prompt("slim_script", "server")(resources.complete_server)


async def write_script(args: WriteScript, ctx: Context[Session]) -> str:
    """Make the prompt for a new script."""
    name = paths.validate_script(args.filename)
    index = await index_definitions(ctx.state)
    words = {word for word in _words(args.goal) if len(word) >= _LEAST_LETTERS}
    found = _unique([entry for word in sorted(words) for entry in index.find(word, 3)[0]])
    return (
        f"Write a Bitburner script {name} for this goal:\n\n{args.goal}\n\n"
        "Export `async function main(ns)`. Keep the RAM cost low: every ns function that appears in the "
        "script is paid for once. Look further functions up with search_definitions, write the script with "
        "write_file, and tell its RAM cost, which the answer brings.\n\n"
        f"{_quoted(found)}"
    )


async def slim_script(args: SlimScript, ctx: Context[Session]) -> str:
    """Make the prompt for slimming a script."""
    name, on = paths.validate_script(args.filename), paths.validate_server(args.server)
    content = await ctx.state.remote.read(name, on)
    cost, problem = await measure_cost(ctx.state.remote, name, on)
    index: Definitions = await index_definitions(ctx.state)
    called = set(_words(content)) - _BASICS
    told = (
        f"It costs {format_cost(cost)} GB of RAM now."
        if cost is not None
        else f"Its cost is unknown: {problem}"
    )
    return (
        f"Lower the RAM cost of {name} on {on} without changing what it does. {told}\n"
        "Each ns function counts once for a script, whether it is reached or not: remove unneeded ones, "
        "replace dear ones by cheap ones, or move them into a script of their own that is run only when "
        "needed. Change the file with edit_file and compare the cost that the answer brings.\n\n"
        f"```js\n{content}\n```\n\n{_quoted(_unique(index.named(called)))}"
    )


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c in "_$" else " " for c in text).split()


def _unique(entries: list[Entry]) -> list[Entry]:
    return list({entry.symbol: entry for entry in entries}.values())


def _quoted(entries: list[Entry]) -> str:
    """Give entries as one block, as many as are bearable."""
    texts: list[str] = []
    left = _MOST_CHARACTERS
    for entry in entries[:_MOST_ENTRIES]:
        text = f"// {entry.symbol}\n{shorten_entry(entry)}"
        left -= len(text)
        if left < 0:
            break
        texts.append(text)
    return "Relevant definitions:\n\n```ts\n" + "\n\n".join(texts) + "\n```" if texts else ""
