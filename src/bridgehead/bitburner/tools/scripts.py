"""Scripts: what the tools say about a script beside its content: its problems, costs, and who imports it.

Parsing takes milliseconds and runs in a thread: other calls have their turn meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.errors import BridgeError

from ..game import paths
from ..session import Session
from .definitions import load_index

if TYPE_CHECKING:
    from ..game.remote import GameFile
    from ..netscript.costs import Itemised, Source

_MOST_IMPORTS = 50
_LONGEST_CHECKED = 300_000
"""Characters; longer scripts come from bundlers, which check them."""


class ScriptProblem(Struct):
    """Something that will fail when the script runs."""

    code: str
    message: str
    line: int
    column: int


async def inspect_script(session: Session, name: str, content: str) -> list[ScriptProblem]:
    """Look for what the game takes without a word and then fails at: syntax, and unknown functions."""
    if not paths.is_script(name) or len(content) > _LONGEST_CHECKED:
        return []
    try:
        index = await load_index(session)
    except BridgeError:
        return []  # without definitions nothing is certain

    def check() -> list[ScriptProblem]:
        from ..netscript.checking import check_script

        found = check_script(content, name, index.definitions, index.search)
        return [ScriptProblem(one.code, one.message, one.line, one.column) for one in found]

    return await asyncio.to_thread(check)


def describe_problems(problems: list[ScriptProblem]) -> str:
    """Say what is wrong, a line for each."""
    if not problems:
        return ""
    lines = [f"line {one.line}, column {one.column}: {one.message}" for one in problems]
    return "\n".join(["It will fail when it runs:", *lines])


async def find_importers(session: Session, on: str, name: str) -> list[str]:
    """Return the scripts of a server that import a file."""
    if not paths.is_script(name):
        return []
    try:
        files = await session.remote.read_all(on)
    except BridgeError:
        return []  # what was asked for does not depend on it
    return await asyncio.to_thread(_list_importers, files, name)


def _list_importers(files: list[GameFile], name: str) -> list[str]:
    from ..netscript.costs import list_imports, resolve_import

    stem = name.rpartition(".")[0]
    last = stem.rpartition("/")[2]
    return [
        one.filename
        for one in files
        if one.filename != name
        and paths.is_script(one.filename)
        and last in one.content  # most files are never parsed
        and any(
            resolve_import(one.filename, module) == stem for module in list_imports(one.content, one.filename)
        )
    ]


async def itemise_cost(session: Session, on: str, name: str, total: float | None) -> Itemised | None:
    """Return what makes a script cost what it does; None where that cannot be told."""
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
    while waiting and len(found) < _MOST_IMPORTS:
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
