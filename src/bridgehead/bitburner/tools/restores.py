"""Restores: the tool that lists, compares and restores earlier contents of files."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context
from bridgehead.runtime.errors import BridgeError, InvalidArgument
from bridgehead.runtime.lines import split_lines

from ..changes.file_writer import Restore
from ..errors import MissingFile
from ..game import paths
from ..session import Session
from .declaring import Server, ToolDeclarer
from .writes import Written, describe_outcome, describe_written

_MAX_DIFF = 12_000
"""Characters of a diff: with text and structure together, every agent CLI shows it whole."""
_MAX_LISTED = 50
"""Versions on a page, about 18 KB of text and structure."""


class RestoreFile(Arguments):
    """Input of restore_file."""

    filename: (
        Annotated[str, Meta(description="Path; without it, lists what is kept of the server")] | None
    ) = None
    server: Server = paths.HOME
    version: (
        Annotated[
            str, Meta(description="As list_only shows it; the one before the current content if left out")
        ]
        | None
    ) = None
    list_only: Annotated[bool, Meta(description="List the versions, restore nothing")] = False
    diff: Annotated[
        bool, Meta(description="Show what restoring would change in the file, restore nothing")
    ] = False
    compare_to: (
        Annotated[str, Meta(description="With diff: compare version to this version, not to the file")] | None
    ) = None
    filenames: (
        Annotated[list[str], Meta(min_length=1, max_length=100, description="Several paths, up to 100")]
        | None
    ) = None


class KeptVersion(Struct):
    """A content that can be restored."""

    version: str
    filename: str
    kept_at: str
    because: str
    bytes: int
    kind: str = "found"


class NotRestored(Struct):
    """A file of several that could not be restored."""

    filename: str
    problem: str


class Restored(Struct):
    """Output of restore_file: the restored file or files, the kept versions, or the diff."""

    written: Written | None = None
    versions: list[KeptVersion] | None = None
    diff: str | None = None
    restored: list[str] | None = None
    failed: list[NotRestored] | None = None


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.write_tool(
        "Restore a file",
        "Bring back what a file in the Bitburner game held before a write, edit or delete, or what the "
        "game has lost; each further call goes one version further back. With list_only, list the kept "
        "versions, newest first; with diff, compare first. What the file holds now is kept too.",
        destructive=True,
        effect="overwrites",
        idempotent=False,
    )(restore_file)


async def restore_file(args: RestoreFile, ctx: Context[Session]) -> Answer[Restored]:
    """List, compare or restore contents."""
    on = paths.validate_server(args.server)
    name = None if args.filename is None else paths.validate_filename(args.filename)
    if not ctx.state.history.is_on:
        raise InvalidArgument("Backups are off.", next_step="Unset BITBURNER_BACKUP_DIR to have them kept.")
    if args.filenames is not None:
        return await _restore_several(ctx, on, args)
    if name is None or args.list_only:
        return await _list_versions(ctx.state, on, name, args.version)
    if args.diff:
        return await _compare(ctx.state, on, name, args)

    restore = Restore(on, name, args.version)
    outcome = await ctx.state.writer.apply(restore, ctx.state.name_agent(ctx))
    written, notes = await describe_written(ctx.state, on, name, outcome)
    undo = (f"To undo this, restore version {written.kept_version}.",) if written.kept_version else ()
    text = f"Restored {name} from {args.version or 'the version before'}."
    return Answer(text, Restored(written), notes=(*notes, *undo))


async def _restore_several(ctx: Context[Session], on: str, args: RestoreFile) -> Answer[Restored]:
    if args.filename is not None or args.version is not None or args.list_only or args.diff:
        raise InvalidArgument(
            "filenames goes with server alone.", next_step="Use filename for one file and its versions."
        )
    names = [paths.validate_filename(name) for name in args.filenames or ()]
    restored: list[str] = []
    failed: list[NotRestored] = []
    notes: list[str] = []
    next_steps: list[str] = []
    for name in dict.fromkeys(names):
        try:
            # One after the other; a file that fails does not keep the others from being restored.
            outcome = await ctx.state.writer.apply(Restore(on, name), ctx.state.name_agent(ctx))
            restored.append(name)
            notes += describe_outcome(ctx.state, outcome)
        except BridgeError as error:
            failed.append(NotRestored(name, error.message))
            next_steps += [error.next_step] if error.next_step else []
    lines = [f"Restored {len(restored)} of {len(restored) + len(failed)} files."]
    lines += [f"{file.filename}: {file.problem}" for file in failed]
    return Answer(
        "\n".join(lines),
        Restored(restored=restored, failed=failed),
        notes=tuple(notes),
        next=tuple(dict.fromkeys(next_steps)),
    )


async def _list_versions(session: Session, on: str, name: str | None, after: str | None) -> Answer[Restored]:
    """List versions, newest first; if `after` names one of the versions, begin with the next older one."""
    kept = [
        KeptVersion(
            version.name, version.filename, version.kept_at, version.because, version.bytes, version.kind
        )
        for version in await asyncio.to_thread(session.history.list_entries, on, name)
        if version.digest is not None  # a deletion: nothing to restore
    ]
    start = next((place for place, version in enumerate(kept, 1) if version.version == after), 0)
    page = kept[start : start + _MAX_LISTED]
    lines = [
        f"{version.version}  {version.kept_at}  {version.bytes:>8} bytes  {version.filename}  "
        f"{'written by' if version.kind == 'written' else 'before'} {version.because}"
        for version in page
    ]
    notes: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    if start + len(page) < len(kept):
        one_file = ", or filename for those of one file" if name is None else ""
        notes = (f"These are {len(page)} of {len(kept)} versions.",)
        next_steps = (f"For older ones, set list_only and version {page[-1].version}{one_file}.",)
    text = "\n".join(lines) or "Nothing is kept."
    return Answer(text, Restored(versions=page), notes=notes, next=next_steps)


async def _compare(session: Session, on: str, name: str, args: RestoreFile) -> Answer[Restored]:
    from difflib import unified_diff

    history = session.history
    current: str | None = None
    with suppress(MissingFile):
        current = await session.remote.read(name, on)
    if args.version is None:
        chosen = await asyncio.to_thread(history.find_undo, on, name, current)
    else:
        chosen = await asyncio.to_thread(history.load, on, name, args.version)
    before, label = current or "", "now"
    if args.compare_to is not None:
        other = await asyncio.to_thread(history.load, on, name, args.compare_to)
        before, label = other.content or "", other.name
    lines = unified_diff(
        split_lines(before, keepends=True),
        split_lines(chosen.content or "", keepends=True),
        f"{name} ({label})",
        f"{name} ({chosen.name})",
    )
    text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    if len(text) > _MAX_DIFF:
        text = f"{text[:_MAX_DIFF]}\n… {len(text) - _MAX_DIFF} more characters\n"
    same = () if text else (f"{name} holds the same as version {chosen.name}.",)
    return Answer(text or "No difference.", Restored(diff=text), notes=same)
