"""Writes: how a file is changed without anything being lost, and the tools that write and delete.

Every change goes through `rewrite` or `delete_file`: the previous content is read and kept first, and if that
cannot be done, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context, elicitation
from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.errors import BridgeError, InvalidArgument, NotFound

from ..errors import Conflict, Declined, Disconnected, InvalidReply, ReplyTimeout, add_note
from ..game import paths
from ..session import Session
from . import ram
from .declaring import Filename, Server, ToolDeclarer

if TYPE_CHECKING:
    from ..game.remote import Remote

Change = Callable[[str | None], str]
"""Makes the new content from the previous one, which is None where there is no file."""
NOTHING_CHANGED = "Nothing was changed."
UNKNOWN = "It is not known whether the change was made: read the file before trying again."
_AGREEMENT: dict[str, Any] = {"type": "object", "properties": {}}


class WriteFile(Arguments):
    """Input of write_file."""

    filename: Filename
    content: Annotated[str, Meta(description="The whole new content")]
    server: Server = paths.HOME
    if_match: (
        Annotated[
            str,
            Meta(
                description="Write only if the file now holds exactly this (or has this SHA-256, in hex); "
                "empty: only if it is empty or missing"
            ),
        ]
        | None
    ) = None


class Written(Struct):
    """Output of the tools that write a file."""

    result: Literal["OK"]
    filename: str
    server: str
    bytes: int
    ram_gb: float | None = None
    ram_problem: str | None = None
    kept_version: str | None = None


class DeleteFile(Arguments):
    """Input of delete_file."""

    filename: Filename
    server: Server = paths.HOME


class Deleted(Struct):
    """Output of delete_file."""

    result: Literal["OK"]
    kept_version: str | None = None


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.write_tool(
        "Write a file",
        "Write a whole file, over what was there; the previous content is kept for restore_file. Answers OK, "
        "and the RAM cost of a script. For a small change use edit_file.",
        destructive=True,
        idempotent=True,
    )(write_file)
    tools.write_tool(
        "Delete a file",
        "Delete a script or text file; its content is kept for restore_file. The user may be asked first. "
        "Answers OK.",
        destructive=True,
        idempotent=False,
    )(delete_file)
    tools.write_tool(
        "Edit a file",
        "Replace an exact text in a file; refused unless it occurs exactly count times. The previous content "
        "is kept for restore_file.",
        destructive=True,
        idempotent=False,
    )(edit_file)


async def write_file(args: WriteFile, ctx: Context[Session]) -> Answer[Written]:
    """Write a whole file."""
    name, on = paths.validate_filename(args.filename), paths.validate_server(args.server)
    check_size(args.content, ctx.state.settings.write_max_bytes)

    def change(previous: str | None) -> str:
        if args.if_match is not None and not _is_match(previous or "", args.if_match):
            raise Conflict(
                f"{name} on {on} does not hold what if_match says. {NOTHING_CHANGED}",
                next_step="Read it, merge, and write again.",
            )
        return args.content

    must_read = args.if_match is not None
    return Answer("OK", await rewrite(ctx.state, on, name, change, because="write_file", must_read=must_read))


async def delete_file(args: DeleteFile, ctx: Context[Session]) -> Answer[Deleted]:
    """Delete a file."""
    name, on = paths.validate_filename(args.filename), paths.validate_server(args.server)
    await _agreed(ctx, f"Delete {name} on {on}?")
    session = ctx.state
    async with session.lock_file(on, name):
        kept = None
        if session.backups.is_on:
            previous = await _previous(session.remote, on, name)
            kept = await _kept(session, on, name, previous, "delete_file")
        await _done(session.remote.delete(name, on))
    session.announce(on, name, True)  # noqa: FBT003 - named in its type
    return Answer("OK", Deleted("OK", kept))


async def _agreed(ctx: Context[Session], message: str) -> None:
    """Ask the user, where that is wanted and possible."""
    question = elicitation(message, _AGREEMENT)
    if not ctx.state.settings.confirm_delete or not ctx.can_ask(question):
        return
    answer = (await ctx.ask({"delete": question}))["delete"]
    if not answer.accepted:
        raise Declined(
            f"The user was asked and did not agree. {NOTHING_CHANGED}", next_step="Ask the user what to do."
        )


def check_size(content: str, most: int) -> None:
    """Refuse a content that is too large to be written."""
    size = len(content.encode())
    if size > most:
        raise InvalidArgument(
            f"The content has {size} bytes, and at most {most} may be written.",
            next_step="Split it into several files, or raise FILE_WRITE_MAX_BYTES.",
        )


def _is_match(previous: str, wanted: str) -> bool:
    if previous == wanted:
        return True
    from hashlib import sha256

    return sha256(previous.encode()).hexdigest() == wanted.lower()


async def rewrite(
    session: Session, on: str, name: str, change: Change, *, because: str, must_read: bool = True
) -> Written:
    """Change a file: read it, keep what it holds, write. Two changes of one file never interleave here."""
    remote = session.remote
    async with session.lock_file(on, name):
        is_read = must_read or session.backups.is_on
        previous = await _previous(remote, on, name) if is_read else None
        content = change(previous)
        kept = None if content == previous else await _kept(session, on, name, previous, because)
        await _done(remote.push(name, content, on))
    session.announce(on, name, is_read and previous is None)
    cost, problem = await ram.cost_of(remote, name, on)
    return Written("OK", name, on, len(content.encode()), cost, problem, kept)


def told_cost(written: Written) -> str:
    """Give the RAM cost as an addition to a text; nothing for what has none."""
    if written.ram_gb is not None:
        return f" It costs {ram.shown(written.ram_gb)} GB of RAM."
    return f" {written.ram_problem}" if written.ram_problem else ""


async def _previous(remote: Remote, on: str, name: str) -> str | None:
    """Return what a file holds, or None where it is not there.

    Asked in one go: the list tells whether it is there, so that no error has to be understood.
    """
    names, content = await asyncio.gather(
        remote.list_names(on), remote.read(name, on), return_exceptions=True
    )
    try:
        if isinstance(names, BaseException):
            raise names
        if isinstance(content, str):
            return content
        if name in names:
            raise content
    except BridgeError as error:
        raise add_note(error, NOTHING_CHANGED) from None
    return None


async def _kept(session: Session, on: str, name: str, content: str | None, because: str) -> str | None:
    if content is None or not session.backups.is_on:
        return None
    return await asyncio.to_thread(session.backups.store, on, name, content, because)


async def _done(exchange: Any) -> None:
    """Make the change itself; where the answer is lost, say that it may have been made all the same."""
    try:
        await exchange
    except (Disconnected, ReplyTimeout, InvalidReply) as error:
        raise add_note(error, UNKNOWN) from None
    except BridgeError as error:
        raise add_note(error, NOTHING_CHANGED) from None


class EditFile(Arguments):
    """Input of edit_file."""

    filename: Filename
    old_text: Annotated[str, Meta(min_length=1, description="The exact text to replace, whitespace included")]
    new_text: Annotated[str, Meta(description="What takes its place")]
    count: Annotated[int, Meta(ge=1, description="How often old_text must occur; all are replaced")] = 1
    server: Server = paths.HOME


async def edit_file(args: EditFile, ctx: Context[Session]) -> Answer[Written]:
    """Replace an exact text in a file."""
    name, on = paths.validate_filename(args.filename), paths.validate_server(args.server)
    most = ctx.state.settings.write_max_bytes

    def change(previous: str | None) -> str:
        if previous is None:
            raise NotFound(f"{name} is not on {on}. {NOTHING_CHANGED}", next_step="list_files tells what is.")
        found = previous.count(args.old_text)
        if found != args.count:
            raise InvalidArgument(
                f"old_text occurs {found} times in {name}, not {args.count}. {NOTHING_CHANGED}",
                next_step="Read the file; make old_text longer to be exact, or set count.",
            )
        content = previous.replace(args.old_text, args.new_text)
        check_size(content, most)
        return content

    written = await rewrite(ctx.state, on, name, change, because="edit_file")
    return Answer(f"Replaced {args.count} in {name}.{told_cost(written)}", written)
