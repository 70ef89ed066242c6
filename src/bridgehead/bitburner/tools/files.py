"""Files: the tools that list and read what is on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Answer, Arguments, CallResult, Context, Text
from bridgehead.runtime.errors import InvalidArgument

from ..game import paths, timestamps
from ..session import Session
from .declaring import Filename, Glob, Server, ToolDeclarer

if TYPE_CHECKING:
    from ..game.remote import Metadata

LineNumber = Annotated[int, Meta(ge=1)]


class ListFiles(Arguments):
    """Input of list_files."""

    server: Server = paths.HOME


class FileNames(Struct):
    """Output of list_files."""

    files: list[str]


class ReadFile(Arguments):
    """Input of read_file."""

    filename: Filename
    server: Server = paths.HOME
    start_line: Annotated[int, Meta(ge=1, description="First line, counted from 1")] | None = None
    end_line: Annotated[int, Meta(ge=1, description="Last line, included")] | None = None


class Content(Struct, omit_defaults=True):
    """Output of read_file."""

    content: str
    total_lines: int
    start_line: int | UnsetType = UNSET
    end_line: int | UnsetType = UNSET


class GetAllFiles(Arguments):
    """Input of get_all_files."""

    server: Server = paths.HOME
    glob: Glob | None = None
    max_bytes: (
        Annotated[int, Meta(ge=1, description="Leave out files that would exceed this in total")] | None
    ) = None


class File(Struct):
    """One file with its content."""

    filename: str
    content: str


class LeftOut(Struct):
    """A file that was too large to be included."""

    filename: str
    bytes: int


class AllFiles(Struct):
    """Output of get_all_files."""

    files: list[File]
    left_out: list[LeftOut] = []


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool("List files", "List the files on a server, as a JSON array of paths.")(list_files)
    tools.read_tool(
        "Read a file",
        "Read a file. Give start_line and end_line for a part of a long one; search_files finds the lines.",
    )(read_file)
    tools.read_tool(
        "Get all files",
        "All files of a server with their contents, as a JSON array of {filename, content}. Can be huge: "
        "narrow it with glob and max_bytes, or use search_files, list_files and read_file instead.",
    )(get_all_files)
    tools.read_tool(
        "Get file metadata", "When a file was created, modified and accessed. Needs Bitburner 3.0 or newer."
    )(get_file_metadata)


async def list_files(args: ListFiles, ctx: Context[Session]) -> Answer[FileNames]:
    """List the files on a server."""
    names = await ctx.state.remote.list_names(paths.validate_server(args.server))
    return Answer(_json(names), FileNames(names))


async def read_file(args: ReadFile, ctx: Context[Session]) -> Answer[Content]:
    """Read a file, or some of its lines."""
    name, on = paths.validate_filename(args.filename), paths.validate_server(args.server)
    if args.start_line is not None and args.end_line is not None and args.end_line < args.start_line:
        raise InvalidArgument(
            f"end_line {args.end_line} is before start_line {args.start_line}.",
            next_step="Give lines in order.",
        )
    content = await ctx.state.remote.read(name, on)
    total = content.count("\n") + 1
    if args.start_line is None and args.end_line is None:
        return Answer(content, Content(content, total))
    first, last = args.start_line or 1, min(args.end_line or total, total)
    if first > total:
        raise InvalidArgument(
            f"{name} has {total} lines, so there is no line {first}.", next_step="Ask for an earlier line."
        )
    part = "\n".join(content.split("\n")[first - 1 : last])
    return Answer(part, Content(part, total, first, last))


async def get_all_files(args: GetAllFiles, ctx: Context[Session]) -> Answer[AllFiles]:
    """Give all files of a server, or those that fit."""
    from ..game.remote import decode_result

    raw = await ctx.state.remote.call("getAllFiles", server=paths.validate_server(args.server))
    found = decode_result("getAllFiles", raw, list[File])
    if args.glob is None and args.max_bytes is None:
        return Answer(
            str(memoryview(raw), "utf-8"), AllFiles(found)
        )  # as the game sent it: no second encoding
    files, left_out = _bounded(
        [file for file in found if paths.matches(file.filename, args.glob)], args.max_bytes
    )
    blocks = [Text(_json(files))]
    if left_out:
        names = ", ".join(f"{one.filename} ({one.bytes} bytes)" for one in left_out)
        blocks.append(Text(f"Left out because of max_bytes: {names}. Use read_file for these."))
    # Two blocks, so that the first stays the plain array; `Answer` carries one.
    return cast("Answer[AllFiles]", CallResult([*blocks], AllFiles(files, left_out)))


def _bounded(files: list[File], most: int | None) -> tuple[list[File], list[LeftOut]]:
    """Part what fits into a number of bytes from what does not, in the order of the files."""
    if most is None:
        return files, []
    fitting: list[File] = []
    left_out: list[LeftOut] = []
    for file in files:
        size = len(file.content.encode())
        if size <= most:
            most -= size
            fitting.append(file)
        else:
            left_out.append(LeftOut(file.filename, size))
    return fitting, left_out


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


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


async def get_file_metadata(args: GetFileMetadata, ctx: Context[Session]) -> Answer[AllFileTimes]:
    """Tell the times of one file or of all."""
    remote, on = ctx.state.remote, paths.validate_server(args.server)
    if args.filename is None:
        found = await remote.list_metadata(on)
    else:
        found = [await remote.get_metadata(paths.validate_filename(args.filename), on)]
    files = [_times(one) for one in found]
    return Answer(msgspec.json.encode(files).decode(), AllFileTimes(files))


def _times(one: Metadata) -> FileTimes:
    created, modified, accessed = (
        timestamps.format_utc(at / 1000) for at in (one.btime, one.mtime, one.atime)
    )
    return FileTimes(one.filename, created, modified, accessed, one.size)
