"""Scripts: the tool that calculates RAM, and notes for other tools: cost, problems, importers.

Parsing takes milliseconds and runs in a thread, so that it does not delay other calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridgehead.mcp import Answer, Arguments, Context
from bridgehead.runtime.errors import BridgeError

from ..errors import RemoteFailure
from ..game import paths
from ..session import Session
from .declaring import Filename, Server, ToolDeclarer

if TYPE_CHECKING:
    from ..netscript.checking import World
    from ..netscript.ram import Ram
    from ..netscript.search import Index

_NAMES_PLACES = re.compile(r"""\(\s*["']""")
"""A call that begins with a literal, which may name a server or a script."""
_ROUNDING = 0.005
"""Half of 0.01 GB: costs closer than this count as equal."""
_MAX_IMPORTS = 100
"""Files that are read one by one; with more, all of the server are read at once."""
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
    base_gb: float = 1.6
    items: list[RamItem] = []
    items_sum_gb: float | None = None


class ScriptProblem(Struct):
    """A problem in a script; `when` says whether it fails at the start, at this line, or perhaps never."""

    code: str
    message: str
    line: int
    column: int
    when: Literal["start", "line", "maybe"] = "line"


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "Calculate RAM",
        "The RAM cost of a script in the Bitburner game in GB, and what each function adds to it.",
    )(calculate_ram)


async def calculate_ram(args: CalculateRam, ctx: Context[Session]) -> Answer[RamCost]:
    """Calculate the RAM cost of a script."""
    name, on = paths.validate_script(args.filename), paths.validate_server(args.server)
    try:
        cost = await ctx.state.remote.calculate_ram(name, on)
    except RemoteFailure as failure:
        reason = await explain_refusal(ctx.state, on, name) if is_ram_refusal(failure) else None
        if reason is None:
            raise
        # The game gives no reason ("Ram cost could not be calculated"), so add one from the same rule.
        text = f"{failure.remote_message.rstrip().rstrip('.')}. {reason}"
        raise RemoteFailure(
            failure.method, text, failure.remote_code, next_step="Correct this, and calculate again."
        ) from None
    itemised = await itemise_cost(ctx.state, on, name, cost)
    answer = Answer(format_cost(cost), RamCost(cost))
    if itemised is None:
        return answer
    answer.structured.items = [RamItem(item.name, item.ram_gb) for item in itemised.items]
    answer.structured.items_sum_gb = itemised.total_gb
    return replace(answer, notes=(describe_items(itemised, cost),))


def describe_items(itemised: Ram, cost: float | None) -> str:
    """List the costs, one per line, with a note if their sum is not the game's figure."""
    if itemised.is_override:
        return f"The script sets its cost itself, by ramOverride({format_cost(itemised.total_gb)})."
    lines = [f"{format_cost(1.6):>8} GB  base"]
    lines += [f"{format_cost(item.ram_gb):>8} GB  {item.name}" for item in itemised.items]
    if cost is not None and abs(itemised.total_gb - cost) >= _ROUNDING:
        lines.append(
            f"The sum is {format_cost(itemised.total_gb)} GB by the definitions; the game says "
            f"{format_cost(cost)} GB, and that is what counts."
        )
    return "\n".join(lines)


def format_cost(cost: float) -> str:
    """Format a cost as the game does: `2`, not `2.0`."""
    return msgspec.json.encode(int(cost) if cost.is_integer() else cost).decode()


def is_ram_refusal(failure: RemoteFailure) -> bool:
    """Return whether the game read the script and calculated no cost, in the words of either generation."""
    return "ram" in failure.remote_message.lower().partition("filename:")[0].split()


async def measure_cost(session: Session, name: str, server: str) -> tuple[float | None, str | None]:
    """Return a script's cost, or why there is none; (None, None) for other files."""
    if not paths.is_script(name):
        return None, None
    try:
        return await session.remote.calculate_ram(name, server), None
    except RemoteFailure as failure:
        reason = await explain_refusal(session, server, name) if is_ram_refusal(failure) else None
        return None, failure.message if reason is None else f"The game calculates no RAM cost: {reason}"
    except BridgeError as error:
        return None, error.message


async def explain_refusal(session: Session, on: str, name: str) -> str | None:
    """Return why the game refuses a script, by the game's rule; None if the rule finds no reason."""
    from ..netscript.ram import RamRefused, collect_names  # lazy: the script check, 8 ms

    try:
        sources = await read_sources(session, on, name)
    except BridgeError:
        return None

    def find_reason() -> str | None:
        try:
            collect_names(name, sources, on)
        except RamRefused as refused:
            return str(refused)
        return None

    return await session.parsing.run_in_thread(find_reason)


def describe_cost(cost: float | None, problem: str | None) -> str:
    """Describe a script's cost, or why it is unknown; empty for other files."""
    return f"It costs {format_cost(cost)} GB of RAM." if cost is not None else problem or ""


async def find_problems(session: Session, on: str, name: str, content: str) -> list[ScriptProblem]:
    """Check a script that was just written; no problems without the game's definitions."""
    try:
        index = await session.load_index()
        sources = await read_sources(session, on, name, content)
    except BridgeError:
        return []
    world = await read_world(session, on, (name,)) if _NAMES_PLACES.search(content) else None
    return await check_one(session, index, name, sources, is_draft=True, world=world)


async def read_world(session: Session, on: str, drafts: Iterable[str]) -> World | None:
    """Return the servers and files that literals may name; None if the game does not list them."""
    from ..netscript.checking import World  # lazy: the script check, 8 ms

    try:
        servers = await session.remote.list_servers()
        names = await session.remote.list_names(on)
    except BridgeError:  # also games before 2.6, which do not list servers
        return None
    if all(server.purchasedByPlayer for server in servers):
        return None  # not a whole network
    return World(frozenset(server.hostname for server in servers), frozenset({*names, *drafts}))


async def check_one(
    session: Session,
    index: Index,
    name: str,
    files: Mapping[str, str],
    *,
    is_draft: bool,
    world: World | None,
) -> list[ScriptProblem]:
    """Check one script among others. In a draft, a missing import is no problem: it may still be written."""
    return await session.parsing.run_in_thread(partial(_check, index, name, files, world, is_draft=is_draft))


def _check(
    index: Index, name: str, files: Mapping[str, str], world: World | None, *, is_draft: bool
) -> list[ScriptProblem]:
    from ..netscript.checking import check_script  # lazy: the script check, 8 ms

    problems = check_script(files[name], name, index.definitions, index.search, files, world)
    return [
        ScriptProblem(
            problem.code,
            problem.message,
            problem.line,
            problem.column,
            "maybe" if is_draft and problem.code == "missing_import" else problem.when,
        )
        for problem in problems
    ]


def describe_problems(problems: list[ScriptProblem]) -> str:
    """List the problems, one per line, grouped by their effect on the script."""
    if not problems:
        return ""
    lines: list[str] = []
    for when, heading in _HEADINGS.items():
        in_group = [problem for problem in problems if problem.when == when]
        if in_group:
            lines += [
                heading,
                *(f"line {problem.line}, column {problem.column}: {problem.message}" for problem in in_group),
            ]
    return "\n".join(lines)


async def find_importers(session: Session, on: str, name: str) -> list[str]:
    """Return the scripts of a server that import a file; none if the game cannot be asked."""
    from ..netscript.modules import list_modules, resolve_module  # lazy: the script check, 8 ms

    if not paths.is_script(name):
        return []
    async with session.checks.take():
        try:
            files = await session.remote.read_all(on)
        except BridgeError:
            return []  # importers are only a note; the call succeeds without them
        contents = {file.filename: file.content for file in files if paths.is_script(file.filename)}
        contents.setdefault(name, "")

        def list_importers() -> list[str]:
            last = name.rpartition(".")[0].rpartition("/")[2]
            return [
                filename
                for filename, content in contents.items()
                if filename != name
                and last in content  # cheap test first, so that most files are never parsed
                and any(
                    resolve_module(module, filename, contents.__contains__) == name
                    for module in list_modules(content, filename)
                )
            ]

        return await session.parsing.run_in_thread(list_importers)


async def itemise_cost(session: Session, on: str, name: str, total: float | None) -> Ram | None:
    """Return the functions that a script pays for; None if the game does not answer or refuses the script."""
    from ..netscript.ram import RamRefused, calculate  # lazy: the script check, 8 ms

    try:
        index = await session.load_index()
        sources = await read_sources(session, on, name)
    except BridgeError:
        return None

    def compute() -> Ram | None:
        try:
            return calculate(name, sources, index.prices, server=on, total=total)
        except RamRefused:
            return None

    return await session.parsing.run_in_thread(compute)


async def read_sources(session: Session, on: str, name: str, content: str | None = None) -> dict[str, str]:
    """Read a script and everything that it imports; `content` replaces the script's own."""
    from ..netscript.modules import list_modules, resolve_module  # lazy: the script check, 8 ms

    names: set[str] | None = None  # fetched for the first import; most scripts have none
    sources: dict[str, str] = {}
    waiting = [name]
    while waiting:  # files that import each other are read once
        if len(sources) == _MAX_IMPORTS:
            everything = {file.filename: file.content for file in await session.remote.read_all(on)}
            return everything | sources
        current = waiting.pop()
        if current in sources:
            continue
        is_main = current == name and content is not None
        text = content if is_main and content is not None else await session.remote.read(current, on)
        sources[current] = text
        if "import" not in text and "from" not in text:  # most scripts: no need to parse them
            continue
        modules = await session.parsing.run_in_thread(partial(list_modules, text, current))
        if modules and names is None:
            names = set(await session.remote.list_names(on))
        if names is not None:
            targets = (resolve_module(module, current, names.__contains__) for module in modules)
            waiting += [file for file in targets if file is not None]
    return sources
