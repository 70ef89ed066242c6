"""Metadata: the tool that tells when files were made, changed and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context

from . import moments, paths
from .arguments import Server
from .session import Session
from .toolbox import Toolbox

if TYPE_CHECKING:
    from .remote import Metadata


class GetFileMetadata(Arguments):
    """Input of get_file_metadata."""

    filename: Annotated[str, Meta(description="Path; all files of the server if left out")] | None = None
    server: Server = paths.HOME


class FileTimes(Struct, omit_defaults=True):
    """When a file was made, changed and read, in UTC."""

    filename: str
    created: str
    modified: str
    accessed: str
    size: int | None = None


class AllFileTimes(Struct):
    """Output of get_file_metadata."""

    files: list[FileTimes]


def declare(tools: Toolbox) -> None:
    """Declare the tools of this module."""
    tools.reads(
        "Get file metadata", "When a file was created, modified and accessed. Needs Bitburner 3.0 or newer."
    )(get_file_metadata)


async def get_file_metadata(args: GetFileMetadata, ctx: Context[Session]) -> Answer[AllFileTimes]:
    """Tell the times of one file or of all."""
    remote, on = ctx.state.remote, paths.server(args.server)
    if args.filename is None:
        found = await remote.all_metadata(on)
    else:
        found = [await remote.metadata(paths.filename(args.filename), on)]
    files = [_times(one) for one in found]
    return Answer(msgspec.json.encode(files).decode(), AllFileTimes(files))


def _times(one: Metadata) -> FileTimes:
    created, modified, accessed = (moments.shown(at / 1000) for at in (one.btime, one.mtime, one.atime))
    return FileTimes(one.filename, created, modified, accessed, one.size)
