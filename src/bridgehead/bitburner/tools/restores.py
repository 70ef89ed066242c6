"""Restores: the tool that lists earlier contents of files and brings them back."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context
from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.errors import InvalidArgument

from ..game import paths
from ..session import Session
from .declaring import Server, ToolDeclarer
from .writes import Written, rewrite, told_cost


class RestoreFile(Arguments):
    """Input of restore_file."""

    filename: (
        Annotated[str, Meta(description="Path; without it, lists what is kept of the server")] | None
    ) = None
    server: Server = paths.HOME
    version: Annotated[str, Meta(description="Which one; the newest if left out")] | None = None
    list_only: Annotated[bool, Meta(description="List the versions, restore nothing")] = False


class KeptVersion(Struct):
    """An earlier content that can be restored."""

    version: str
    filename: str
    kept_at: str
    because: str
    bytes: int


class Restored(Struct):
    """Output of restore_file: what was written, or what is kept."""

    written: Written | None = None
    versions: list[KeptVersion] | None = None


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.write_tool(
        "Restore a file",
        "Bring back what a file held before a write, edit or delete; with list_only, list the kept versions, "
        "newest first. What the file holds now is kept too, so restoring can be undone.",
        destructive=True,
        idempotent=False,
    )(restore_file)


async def restore_file(args: RestoreFile, ctx: Context[Session]) -> Answer[Restored]:
    """List or restore earlier contents."""
    on = paths.validate_server(args.server)
    name = None if args.filename is None else paths.validate_filename(args.filename)
    backups = ctx.state.backups
    if not backups.is_on:
        raise InvalidArgument("Backups are off.", next_step="Unset BITBURNER_BACKUP_DIR to have them kept.")
    if name is None or args.list_only:
        found = await asyncio.to_thread(backups.list_versions, on, name)
        listed = [KeptVersion(v.version, v.filename, v.kept_at, v.because, v.bytes) for v in found]
        return Answer(_listed(listed), Restored(versions=listed))
    version, content = await asyncio.to_thread(backups.load, on, name, args.version)
    written = await rewrite(ctx.state, on, name, lambda _: content, because="restore_file")
    return Answer(f"Restored {name} from {version}.{told_cost(written)}", Restored(written))


def _listed(versions: list[KeptVersion]) -> str:
    lines = [
        f"{v.version}  {v.kept_at}  {v.bytes:>8} bytes  {v.filename}  before {v.because}" for v in versions
    ]
    return "\n".join(lines) or "Nothing is kept."
