"""Scripts: the tool that calculates RAM, and remarks of other tools on a script: cost, problems, importers.

Parsing takes milliseconds and runs in a thread, so that it does not delay other calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridgehead.mcp import Answer, Arguments, Context
from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.errors import BridgeError

from ..game import paths
from ..session import Session
from .declaring import Filename, Server, ToolDeclarer
from .definitions import load_index

if TYPE_CHECKING:
    from ..game.remote import Remote
    from ..netscript.costs import Itemised, Source

_ROUNDING = 0.005
"""Half a hundredth of a GB: sums closer than this are equal."""
_MAX_IMPORTS = 50
_HEADINGS = {
    "start": "It will fail when it runs:",
    "line": "It will fail when it reaches:",
    "maybe": "Look at:",
}


class CalculateRam(Arguments):
    """Input of calculate_ram."""

    filename: Filename
    server: Server = paths.HOME


class RamItem(Struct):
    """A function and its cost, which counts once per script."""

    name: str
    ram_gb: float


class RamCost(Struct):
    """Output of calculate_ram: the game's figure, and its parts by the definitions."""

    ram_gb: float
    items: list[RamItem] = []
    items_sum_gb: float | None = None


class ScriptProblem(Struct):
    """Something wrong in a script: it fails when it starts, when it reaches the line, or maybe never."""

    code: str
    message: str
    line: int
    column: int
    when: Literal["start", "line", "maybe"] = "line"


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "Calculate RAM", "The RAM cost of a script in GB, as a number, and what each function adds to it."
    )(calculate_ram)


async def calculate_ram(args: CalculateRam, ctx: Context[Session]) -> Answer[RamCost]:
    """Calculate the RAM cost of a script."""
    name, on = paths.validate_script(args.filename), paths.validate_server(args.server)
    cost = await ctx.state.remote.calculate_ram(name, on)
    itemised = await itemise_cost(ctx.state, on, name, cost)
    answer = Answer(format_cost(cost), RamCost(cost))
    if itemised is None:
        return answer
    answer.structured.items = [RamItem(one.name, one.ram_gb) for one in itemised.items]
    answer.structured.items_sum_gb = itemised.sum_gb
    return replace(answer, notes=(describe_items(itemised, cost),))


def describe_items(itemised: Itemised, cost: float | None) -> str:
    """List the costs, one per line, with a note if their sum is not the game's figure."""
    lines = [f"{format_cost(1.6):>8} GB  base"]
    lines += [f"{format_cost(one.ram_gb):>8} GB  {one.name}" for one in itemised.items]
    if cost is not None and abs(itemised.sum_gb - cost) >= _ROUNDING:
        lines.append(
            f"The sum is {format_cost(itemised.sum_gb)} GB by the definitions; the game says "
            f"{format_cost(cost)} GB, and that is what counts."
        )
    return "\n".join(lines)


def format_cost(cost: float) -> str:
    """Format a cost as the game does: `2`, not `2.0`."""
    return msgspec.json.encode(int(cost) if cost.is_integer() else cost).decode()


async def measure_cost(remote: Remote, name: str, server: str) -> tuple[float | None, str | None]:
    """Return a script's cost, or why there is none; (None, None) for other files."""
    if not paths.is_script(name):
        return None, None
    try:
        return await remote.calculate_ram(name, server), None
    except BridgeError as error:
        return None, error.message


def describe_cost(cost: float | None, problem: str | None) -> str:
    """Describe a script's cost, or why it is unknown; empty for other files."""
    return f"It costs {format_cost(cost)} GB of RAM." if cost is not None else problem or ""


async def inspect_script(session: Session, name: str, content: str) -> list[ScriptProblem]:
    """Return the problems of a script, which the game accepts and which show only when it runs."""
    if not paths.is_script(name):
        return []
    try:
        index = await load_index(session)
    except BridgeError:
        return []  # without definitions nothing is certain

    def check() -> list[ScriptProblem]:
        from ..netscript.checking import check_script

        found = check_script(content, name, index.definitions, index.search)
        return [ScriptProblem(one.code, one.message, one.line, one.column, one.when) for one in found]

    return await asyncio.to_thread(check)


def describe_problems(problems: list[ScriptProblem]) -> str:
    """List the problems, one per line, by what they do to the script."""
    lines = []
    for when, heading in _HEADINGS.items():
        found = [one for one in problems if one.when == when]
        if found:
            lines += [heading, *(f"line {one.line}, column {one.column}: {one.message}" for one in found)]
    return "\n".join(lines)


async def find_importers(session: Session, on: str, name: str) -> list[str]:
    """Return the scripts of a server that import a file; none if the game cannot be asked."""
    if not paths.is_script(name):
        return []
    try:
        files = await session.remote.read_all(on)
    except BridgeError:
        return []  # importers are a remark only; the call goes on without it

    def list_importers() -> list[str]:
        from ..netscript.costs import list_imports, resolve_import

        stem = name.rpartition(".")[0]
        last = stem.rpartition("/")[2]
        return [
            one.filename
            for one in files
            if one.filename != name
            and paths.is_script(one.filename)
            and last in one.content  # cheap test first, so that most files are never parsed
            and any(
                resolve_import(one.filename, module) == stem
                for module in list_imports(one.content, one.filename)
            )
        ]

    return await asyncio.to_thread(list_importers)


async def itemise_cost(session: Session, on: str, name: str, total: float | None) -> Itemised | None:
    """Return the functions that a script pays for; None if the game does not answer."""
    try:
        index = await load_index(session)
        sources = await _collect_sources(session, on, name)
    except BridgeError:
        return None

    def compute() -> Itemised:
        from ..netscript.costs import itemise

        return itemise(sources, index.definitions, total)

    return await asyncio.to_thread(compute)


async def _collect_sources(session: Session, on: str, name: str) -> list[Source]:
    """Read a script and everything that it imports."""
    from ..netscript.costs import Source, list_imports, resolve_import

    names: dict[str, str] | None = None  # most scripts import nothing, and then no list is asked for
    found: dict[str, Source] = {}
    waiting = [name]
    # Breadth is bounded, and a file that is imported in a circle is read once.
    while waiting and len(found) < _MAX_IMPORTS:
        current = waiting.pop()
        if current in found:
            continue
        content = await session.remote.read(current, on)
        found[current] = Source(current, content)
        modules = await asyncio.to_thread(list_imports, content, current)
        if modules and names is None:
            listed = await session.remote.list_names(on)
            names = {one.rpartition(".")[0]: one for one in listed if paths.is_script(one)}
        stems = [resolve_import(current, module) for module in modules]
        waiting += [names[stem] for stem in stems if names is not None and stem in names]
    return list(found.values())
