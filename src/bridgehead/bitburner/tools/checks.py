"""Checks: the tool that checks scripts in the game, or drafts before they are written.

Scripts are checked in a thread, one at a time, so that a cancelled call stops soon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context
from bridgehead.runtime.errors import InvalidArgument

from ..game import paths
from ..session import Session
from .declaring import MAX_QUERY, Server, ToolDeclarer
from .files import MAX_NAMED, describe_no_match
from .scripts import ScriptProblem, check_one, describe_cost, describe_problems, read_world
from .writes import NewFile

if TYPE_CHECKING:
    from ..netscript.checking import World
    from ..netscript.search import Index

_MAX_CHARACTERS = 3_000_000
"""Characters checked in one call, about ten seconds of work."""
_MAX_PROBLEMS = 60
"""Problems listed in one answer, about 15 KB of text and structure; of a single script, all."""


class CheckFiles(Arguments):
    """Input of check_files."""

    glob: Annotated[str, Meta(max_length=MAX_QUERY, description="Such as lib/*.js")] | None = None
    server: Server = paths.HOME
    # A list, because strict clients refuse objects with arbitrary keys.
    drafts: Annotated[list[NewFile], Meta(min_length=1, description="Unwritten scripts")] | None = None
    generation: str | None = None  # such as 3.x


class CheckedFile(Struct):
    """A script with its problems; a draft also has its RAM cost, or why there is none."""

    filename: str
    problems: list[ScriptProblem]
    ram_gb: float | None = None
    ram_problem: str | None = None


class CheckedFiles(Struct):
    """Output of check_files: the scripts with problems; of drafts, all."""

    files: list[CheckedFile]
    checked: int
    with_problems: int


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "Check scripts",
        "Check scripts in the Bitburner game, or drafts with RAM cost.",
        may_take_long=True,
    )(check_files)


async def check_files(args: CheckFiles, ctx: Context[Session]) -> Answer[CheckedFiles]:
    """Check scripts of a server, or drafts among them."""
    session, on = ctx.state, paths.validate_server(args.server)
    drafts = {paths.validate_script(draft.filename): draft.content for draft in args.drafts or ()}
    if drafts and args.glob is not None:
        raise InvalidArgument(
            "glob and drafts cannot be given together.",
            next_step="Give drafts to check texts, glob to check files of the game.",
        )
    if args.generation is None:
        index = await session.load_index()
    else:
        index = await session.load_index_of(args.generation)
    async with session.checks.take():
        written = await session.remote.read_all(on)
        files = {file.filename: file.content for file in written if paths.is_script(file.filename)} | drafts
        names = sorted(drafts or (name for name in files if paths.matches(name, args.glob)))
        if not names:
            no_match = describe_no_match(args.glob, len(files))
            return Answer("There is nothing to check.", CheckedFiles([], 0, 0), notes=(no_match,))
        chosen, left_out = _take(names, files)
        world = await read_world(session, on, drafts)
        checked = [
            await _check_one(session, index, name, files, on, is_draft=name in drafts, world=world)
            for name in chosen
        ]
    notable = [file for file in checked if file.problems]
    reported = checked if drafts else notable
    shown: list[CheckedFile] = []
    listed = 0
    for file in reported:
        listed += len(file.problems)
        if shown and listed > _MAX_PROBLEMS:
            break
        shown.append(file)
    notes = [index.note] if index.note else []
    next_steps: tuple[str, ...] = ()
    if rest := reported[len(shown) :]:
        more = f" and {len(rest) - MAX_NAMED} more" if len(rest) > MAX_NAMED else ""
        others = ", ".join(file.filename for file in rest[:MAX_NAMED])
        notes.append(f"Shown are {len(shown)} of {len(reported)} scripts; the others: {others}{more}.")
        next_steps = (
            "Check fewer drafts at a time." if drafts else "Set glob to the path of another to see it.",
        )
    if left_out:
        notes.append(
            f"{len(left_out)} scripts were not checked, from {left_out[0]} on: a call checks "
            f"{_MAX_CHARACTERS:,} characters. Narrow glob to check them."
        )
    summary = (
        f"Checked {len(checked)} script{'s' if len(checked) != 1 else ''}; {len(notable)} with problems."
    )
    text = "\n\n".join([summary, *(_describe(file) for file in shown)])
    return Answer(text, CheckedFiles(shown, len(checked), len(notable)), notes=tuple(notes), next=next_steps)


def _take(names: list[str], files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Split the names into those that fit into one call, and the rest."""
    size = 0
    for place, name in enumerate(names):
        size += len(files[name])
        if size > _MAX_CHARACTERS and place:
            return names[:place], names[place:]
    return names, []


async def _check_one(
    session: Session,
    index: Index,
    name: str,
    files: Mapping[str, str],
    on: str,
    *,
    is_draft: bool,
    world: World | None,
) -> CheckedFile:
    from ..netscript.ram import RamRefused, calculate  # lazy: the script check, 8 ms

    checked = CheckedFile(name, await check_one(session, index, name, files, is_draft=False, world=world))
    if not is_draft:
        return checked

    def price() -> CheckedFile:
        try:
            checked.ram_gb = calculate(name, files, index.prices, server=on).total_gb
        except RamRefused as refused:
            checked.ram_problem = str(refused)
        return checked

    return await session.parsing.run_in_thread(price)


def _describe(file: CheckedFile) -> str:
    lines = [file.filename, describe_cost(file.ram_gb, file.ram_problem), describe_problems(file.problems)]
    return "\n".join(line for line in lines if line)
