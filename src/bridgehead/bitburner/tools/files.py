"""Files: the tools that list and read files of a server."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from bridgehead.mcp import Answer, Arguments, Context, Text
from bridgehead.runtime.errors import InvalidArgument
from bridgehead.runtime.lines import count_lines, locate, split_lines

from ..changes.differences import describe_differences
from ..changes.history import digest
from ..errors import MissingFile
from ..game import paths, timestamps, wire
from ..game.remote import decode_result
from ..session import Session
from .declaring import MAX_QUERY, Filename, Glob, Server, ToolDeclarer

PAGE = 12_000
"""Characters of a file by default: the most that every agent CLI shows its model in full.

`make agents` measures it. Claude Code diverts 50,000 characters of JSON to a file, and Qwen Code about 30,000
of text and structure together; Codex cuts the middle out of 48,000, and out of 40,000 of text and structure
where its model calls tools from programs.
"""
PAGE_OF_ALL = 10_000
"""Bytes of get_all_files by default; below `PAGE`, to leave room for JSON and the names left out."""
MAX_RESULT = 500_000
"""Characters that Claude Code may show, for an agent that asks for more than a page."""
MAX_ALL = 8_000_000
"""Hard limit of file bytes in one answer: encoding more would delay all other callers."""
MAX_NAMED = 30
"""Files that are named when they are left out."""
_MAX_TIMES = 60
"""Files of one get_file_metadata: with long names, text and structure have 27 KB together."""
PAGE_NAMES = 500
"""Names on a page of list_files: about 15 KB."""


class ListFiles(Arguments):
    """Input of list_files; described in one sentence, because every conversation carries it."""

    server: str = paths.HOME
    glob: str | None = None
    page: int | None = None


class FileNames(Struct, omit_defaults=True):
    """Output of list_files; `total` is set if there are more."""

    files: list[str]
    total: int | UnsetType = UNSET


class ReadFile(Arguments):
    """Input of read_file."""

    filename: Filename
    server: Server = paths.HOME
    start_line: Annotated[int, Meta(ge=1, description="First line, counted from 1")] | None = None
    end_line: Annotated[int, Meta(ge=1, description="Last line, included")] | None = None
    max_characters: Annotated[int, Meta(ge=1, description="Cut at a line beyond this; default 12000")] = PAGE


class Content(Struct, omit_defaults=True):
    """Output of read_file; `start_line` and `end_line` are set for a part of the file."""

    content: str
    total_lines: int
    start_line: int | UnsetType = UNSET
    end_line: int | UnsetType = UNSET
    truncated: bool = False


class GetAllFiles(Arguments):
    """Input of get_all_files."""

    server: Server = paths.HOME
    glob: Glob | None = None
    max_bytes: Annotated[int, Meta(ge=1, description="Bytes in total; default 10000")] = PAGE_OF_ALL
    everything: Annotated[bool, Meta(description="Leave nothing out")] = False


class File(Struct):
    """One file with its content."""

    filename: str
    content: str


class LeftOut(Struct):
    """A file that did not fit."""

    filename: str
    bytes: int


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool("List files", "List files on a Bitburner server (default home).")(list_files)
    tools.read_tool(
        "Read a file",
        "Read a file in the Bitburner game. A long one comes in parts: give start_line and end_line; "
        "search_files finds the lines.",
        meta={"anthropic/maxResultSizeChars": MAX_RESULT},
    )(read_file)
    tools.read_tool(
        "Get all files",
        "Files of a Bitburner server, as a JSON array of {filename, content}. Names those that do not fit. "
        "search_files and read_file are often enough.",
        meta={"anthropic/maxResultSizeChars": MAX_RESULT},
    )(get_all_files)
    tools.read_tool(
        "Get file metadata", "When a file was created, modified and accessed. Needs Bitburner 3.0 or newer."
    )(get_file_metadata)


async def list_files(args: ListFiles, ctx: Context[Session]) -> Answer[FileNames]:
    """List the files on a server."""
    if len(args.glob or "") > MAX_QUERY:
        raise InvalidArgument(f"glob is longer than {MAX_QUERY} characters.", next_step="Shorten it.")
    listed = await ctx.state.remote.list_names(paths.validate_server(args.server))
    names = [name for name in listed if paths.matches(name, args.glob)]
    if not names and args.glob is not None:
        return Answer("[]", FileNames([]), notes=(describe_no_match(args.glob, len(listed)),))
    pages = -(-len(names) // PAGE_NAMES) or 1
    if args.page is None or (args.page == pages == 1):
        # All names, as the contract requires; a client may cut the list, so the next step offers less.
        fewer = f"For {PAGE_NAMES} at a time give page, 1 to {pages}; for some only, glob, such as lib/*.js."
        return Answer(_json(names), FileNames(names), next=(fewer,) if pages > 1 else ())
    if not 1 <= args.page <= pages:
        raise InvalidArgument(
            f"There is no page {args.page}; the last is {pages}, with {len(names)} files in all.",
            next_step="Ask for one of these.",
        )
    part = names[(args.page - 1) * PAGE_NAMES : args.page * PAGE_NAMES]
    return Answer(
        _json(part),
        FileNames(part, len(names)),
        notes=(f"This is page {args.page} of {pages}; there are {len(names)} files.",),
    )


async def read_file(args: ReadFile, ctx: Context[Session]) -> Answer[Content]:
    """Read a file, or some of its lines."""
    name, on = paths.validate_filename(args.filename), paths.validate_server(args.server)
    if args.start_line is not None and args.end_line is not None and args.end_line < args.start_line:
        raise InvalidArgument(
            f"end_line {args.end_line} is before start_line {args.start_line}.",
            next_step="Give lines in order.",
        )
    try:
        content = await ctx.state.remote.read(name, on)
    except MissingFile as missing:
        lost = await ctx.state.writer.explain_missing(on, name)
        if not lost:
            raise
        refusal = (missing.method, missing.remote_message, missing.remote_code)
        raise MissingFile(*refusal, next_step=lost) from None
    part = _choose_lines(name, content, args)
    record_seen(ctx, on, _digest_all([File(name, content)]))
    notes = []
    if part.truncated and isinstance(part.end_line, int):
        if len(part.content) == args.max_characters and part.start_line == part.end_line:
            notes.append(
                f"Line {part.end_line} is longer than this; raise max_characters to read more of it."
            )
        else:
            notes.append(
                f"These are lines {part.start_line} to {part.end_line} of {part.total_lines}. "
                f"To go on, set start_line to {part.end_line + 1}."
            )
    notes += describe_damage(ctx.state, [(name, content)])
    difference = await ctx.state.differences.check(on, name, content)
    if difference is not None:
        notes.append(describe_differences([difference]))
    return Answer(part.content, part, notes=tuple(notes))


def record_seen(ctx: Context[Session], server: str, digests: dict[str, str]) -> None:
    """Record the contents that the agent has seen; if it later overwrites other ones, a note says so."""
    agent = ctx.state.name_agent(ctx)
    for name, content_digest in digests.items():
        ctx.state.last_seen.record_seen(agent, (server, name), content_digest)


def _digest_all(files: list[File]) -> dict[str, str]:
    return {file.filename: digest(file.content) for file in files}


def _choose_lines(name: str, content: str, args: ReadFile) -> Content:
    """Return the requested lines, cut at `max_characters`."""
    total = count_lines(content)
    if args.start_line is None and args.end_line is None and len(content) <= args.max_characters:
        return Content(content, total)
    first, last = args.start_line or 1, min(args.end_line or total, total)
    if first > max(total, 1):
        raise InvalidArgument(
            f"{name} has {total} lines, so there is no line {first}.", next_step="Ask for an earlier line."
        )
    chosen = split_lines(content)[first - 1 : last]
    size, fitting = -1, 0
    for line in chosen:
        size += len(line) + 1  # counts the line feed before it; the first line has none
        if size > args.max_characters:
            break
        fitting += 1
    if fitting == len(chosen):
        return Content("\n".join(chosen), total, first, last)
    if not fitting:  # one line alone is too long
        return Content(chosen[0][: args.max_characters], total, first, first, truncated=True)
    return Content("\n".join(chosen[:fitting]), total, first, first + fitting - 1, truncated=True)


def _describe_all_damage(ctx: Context[Session], files: list[File]) -> list[str]:
    damage = describe_damage(ctx.state, [(file.filename, file.content) for file in files])
    return [" ".join(damage)] if damage else []


def describe_damage(session: Session, files: list[tuple[str, str]]) -> list[str]:
    """Describe each file that holds half a character, with its first position."""
    return [
        f"{name} holds half a character (an unpaired surrogate) at line {line}, column {column}; "
        f"U+{ord(half):X} stands for it and becomes half a character again when you write it back."
        for name, content in files
        for at, half in [wire.find_stand_in(content, session.connection.halves)]
        if half
        for line, column in [locate(content, at)]
    ]


async def get_all_files(args: GetAllFiles, ctx: Context[Session]) -> list[Text]:
    """Return all files of a server, or those that match and fit."""
    async with ctx.state.remote.whole_server():
        return await _get_all_files(args, ctx)


async def _get_all_files(args: GetAllFiles, ctx: Context[Session]) -> list[Text]:
    raw = await ctx.state.remote.call("getAllFiles", Raw, server=paths.validate_server(args.server))
    all_files = decode_result("getAllFiles", raw, list[File])
    chosen = [file for file in all_files if paths.matches(file.filename, args.glob)]
    # Most scripts are ASCII, whose length is their size: no need to encode them.
    texts = [file.content for file in chosen]
    sizes = [len(text) if text.isascii() else len(text.encode()) for text in texts]
    if args.everything and sum(sizes) > MAX_ALL:
        raise InvalidArgument(
            f"These {len(chosen)} files have {sum(sizes):,} bytes; one answer has at most {MAX_ALL:,}.",
            next_step="Choose files with glob, or omit `everything` and read the rest with read_file.",
        )
    if args.glob is None and args.everything:
        # The game's own JSON is the answer: encoding it again would only take time.
        whole = str(memoryview(raw), "utf-8")
        # In a thread: 8 MB take 10 ms.
        record_seen(ctx, args.server, await asyncio.to_thread(_digest_all, all_files))
        return _as_text(whole, _describe_all_damage(ctx, all_files), ())
    files: list[File] = []
    left_out: list[LeftOut] = []
    room = MAX_ALL if args.everything else min(args.max_bytes, MAX_ALL)
    for file, size in zip(chosen, sizes, strict=True):
        if size <= room:
            room -= size
            files.append(file)
        else:
            left_out.append(LeftOut(file.filename, size))
    record_seen(ctx, args.server, _digest_all(files))
    notes = _describe_all_damage(ctx, files)
    next_steps: tuple[str, ...] = ()
    if left_out:
        count, total = len(left_out), sum(file.bytes for file in left_out)
        left_out = left_out[:MAX_NAMED]
        names = ", ".join(f"{file.filename} ({file.bytes} bytes)" for file in left_out)
        more = f" and {count - MAX_NAMED} more" if count > MAX_NAMED else ""
        notes.append(f"Left out of {len(chosen)} files, with {total} bytes: {names}{more}.")
        next_steps = ("Read those that you need with read_file.",)
        if sum(sizes) <= MAX_ALL:
            next_steps += (
                f"Set max_bytes to {args.max_bytes + total}, or everything to true, to get them all at once.",
            )
    if not chosen:
        notes.append(describe_no_match(args.glob, len(all_files)))
    return _as_text(_json(files), notes, next_steps)


def _as_text(whole: str, notes: list[str], next_steps: tuple[str, ...]) -> list[Text]:
    """Return megabytes as text alone: in structured content too, they would be sent twice.

    Without structured content, every client shows all blocks.
    """
    told = [*(f"Note: {note}" for note in notes), *(f"Next: {step}" for step in next_steps)]
    return [Text(whole), *([Text("\n".join(told))] if told else [])]


def describe_no_match(glob: str | None, count: int) -> str:
    """Describe that a pattern matches no file."""
    return f"No file matches {glob}; there are {count} files. list_files shows their paths."


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


class GetFileMetadata(Arguments):
    """Input of get_file_metadata."""

    filename: Annotated[str, Meta(description="Path; all files of the server if left out")] | None = None
    server: Server = paths.HOME


class FileTimes(Struct, omit_defaults=True):
    """Times of creation, modification and access, in UTC."""

    filename: str
    created: str
    modified: str
    accessed: str
    size: int | None = None


class AllFileTimes(Struct):
    """Output of get_file_metadata."""

    files: list[FileTimes]


async def get_file_metadata(args: GetFileMetadata, ctx: Context[Session]) -> Answer[AllFileTimes]:
    """Return the times of one file or of all."""
    remote, on = ctx.state.remote, paths.validate_server(args.server)
    notes: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    if args.filename is None:
        metadata = await remote.list_metadata(on)
        if (count := len(metadata)) > _MAX_TIMES:
            metadata = sorted(metadata, key=lambda file: file.mtime, reverse=True)[:_MAX_TIMES]
            notes = (f"These are the {_MAX_TIMES} files that were modified last, of {count} on {on}.",)
            next_steps = ("For another file, set filename. list_files has all names.",)
    else:
        metadata = [await remote.get_metadata(paths.validate_filename(args.filename), on)]
    files = [
        FileTimes(
            file.filename,
            timestamps.format_utc(file.btime / 1000),
            timestamps.format_utc(file.mtime / 1000),
            timestamps.format_utc(file.atime / 1000),
            file.size,
        )
        for file in metadata
    ]
    return Answer(_json(files), AllFileTimes(files), notes=notes, next=next_steps)
