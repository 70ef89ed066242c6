"""Prompts: write a script, and lower the RAM cost of one, with the relevant definitions."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bridgehead.mcp import Arguments, Bridge, Context

from ..game import paths
from ..netscript.definitions import Declaration
from ..session import Session
from . import resources
from .definitions import shorten
from .scripts import describe_cost, describe_items, itemise_cost, measure_cost

_MAX_ENTRIES = 12
_MAX_CHARACTERS = 20_000


class WriteScript(Arguments):
    """Input of write_script."""

    goal: Annotated[str, Meta(min_length=1, description="What the script should do")]
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
    index = await ctx.state.load_index()
    # The goal is a sentence, by whose words the search ranks functions.
    declarations = index.search.find(args.goal, _MAX_ENTRIES).declarations
    return (
        f"Write a Bitburner script {name} for this goal:\n\n{args.goal}\n\n"
        "Export `async function main(ns)`. Keep the RAM cost low: every ns function that appears in the "
        "script is paid for once. Look further functions up with search_definitions, write the script with "
        "write_file, and tell its RAM cost and any problem, which the answer brings.\n\n"
        f"{_quote([declaration for declaration in declarations if declaration.is_function])}"
    )


async def slim_script(args: SlimScript, ctx: Context[Session]) -> str:
    """Make the prompt for slimming a script."""
    name, on = paths.validate_script(args.filename), paths.validate_server(args.server)
    content = await ctx.state.remote.read(name, on)
    cost, problem = await measure_cost(ctx.state, name, on)
    itemised = await itemise_cost(ctx.state, on, name, cost)
    table = (
        f"What it is made of:\n\n{describe_items(itemised, cost)}\n\n"
        if itemised is not None and cost is not None
        else ""
    )
    index = await ctx.state.load_index()
    names = [item.name.removeprefix("ns.") for item in itemised.items] if itemised is not None else []
    called = [index.definitions.find_path(name) for name in names]
    cost_text = describe_cost(cost, problem) if cost is not None else f"Its cost is unknown: {problem}"
    return (
        f"Lower the RAM cost of {name} on {on} without changing what it does. {cost_text}\n"
        "Each ns function counts once for a script, whether it is reached or not: remove unneeded ones, "
        "replace dear ones by cheap ones, or move them into a script of their own that is run only when "
        f"needed. Change the file with edit_file and compare the cost that the answer brings.\n\n{table}"
        f"```js\n{content}\n```\n\n{_quote([each for each in called if each is not None])}"
    )


def _quote(declarations: list[Declaration]) -> str:
    """Quote declarations as one block, up to `_MAX_ENTRIES` and `_MAX_CHARACTERS`."""
    texts: list[str] = []
    room = _MAX_CHARACTERS
    for declaration in declarations[:_MAX_ENTRIES]:
        text = f"// {declaration.symbol}\n{shorten(declaration)}"
        room -= len(text)
        if room < 0:
            break
        texts.append(text)
    return "Relevant definitions:\n\n```ts\n" + "\n\n".join(texts) + "\n```" if texts else ""
