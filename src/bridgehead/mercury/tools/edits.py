"""The edit tools that build the prompt: `mercury_apply_edit` and `mercury_next_edit`.

The API takes an edit as one message with tags around its parts. These tools take the parts and write the
tags; `mercury_edit_completion` takes a prompt that already has them.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Answer, Bridge, Context, Encoded
from bridgehead.runtime.lines import split_lines

from ..api.wire import EDIT
from ..arguments import CompletionArguments, completion_tool
from ..calling.service import Service
from ..completion import Completion
from ..errors import MercuryError
from ..settings import MercurySettings
from .code import complete_code
from .files import read_files

APPLY_EDIT = "mercury_apply_edit"
NEXT_EDIT = "mercury_next_edit"
CURSOR = "<|cursor|>"
MAX_SNIPPETS = 50

Line = Annotated[int, Meta(ge=1)]
_PARTS = (
    *("original_code", "update_snippet", "code_to_edit", "current_file_content", "edit_diff_history"),
    *("recently_viewed_code_snippets", "recently_viewed_code_snippet"),
)
_TAGS = (CURSOR, *(f"<|{slash}{part}|>" for part in _PARTS for slash in ("", "/")))


class ApplyEdit(CompletionArguments, kw_only=True):
    """A file, and the update to merge into it."""

    original: Annotated[str, Meta(min_length=1, description="The whole file")] | UnsetType = UNSET
    file: Annotated[str, Meta(description="Its path in your roots instead")] | UnsetType = UNSET
    update: Annotated[
        str, Meta(min_length=1, description="The changed parts; a comment may stand for what stays as it is")
    ]

    def to_body(self) -> Any:
        """Return the body of the request."""
        original = self.original or ""
        _check_tags(original=original, update=self.update)
        return self.to_message(f"{_tag('original_code', original)}\n\n{_tag('update_snippet', self.update)}")


class Region(Struct, forbid_unknown_fields=True):
    """A range of lines, both ends included."""

    first: Line
    last: Line


class Cursor(Struct, forbid_unknown_fields=True):
    """A position in a file, counted from 1."""

    line: Line
    column: Line


class Snippet(Struct, forbid_unknown_fields=True):
    """Code of another file."""

    path: str
    content: str


class NextEdit(CompletionArguments, kw_only=True):
    """A file that is being edited."""

    content: Annotated[str, Meta(min_length=1, description="The whole file")]
    path: Annotated[str, Meta(description="Its path, for its language")] = ""
    region: Annotated[Region, Meta(description="Lines that may change; default: all")] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET
    recent_edits: (
        Annotated[list[str], Meta(max_length=MAX_SNIPPETS, description="At most 50 diffs, oldest first")]
        | UnsetType
    ) = UNSET
    snippets: (
        Annotated[list[Snippet], Meta(max_length=MAX_SNIPPETS, description="At most 50, viewed lately")]
        | UnsetType
    ) = UNSET

    def to_body(self) -> Any:
        """Return the body of the request."""
        edits, snippets = self.recent_edits or [], self.snippets or []
        _check_tags(
            content=self.content,
            path=self.path,
            recent_edits="\n".join(edits),
            snippets="\n".join(f"{snippet.path}\n{snippet.content}" for snippet in snippets),
        )
        viewed = "\n".join(
            _tag("recently_viewed_code_snippet", f"code_snippet_file_path: {snippet.path}\n{snippet.content}")
            for snippet in snippets
        )
        parts = [
            _tag("recently_viewed_code_snippets", viewed),
            _tag("current_file_content", f"current_file_path: {self.path}\n{self._mark_region()}"),
            _tag("edit_diff_history", "\n".join(edits)),
        ]
        return self.to_message("\n\n".join(parts))

    def _mark_region(self) -> str:
        """Return the file with tags around the region, and the cursor's tag inside it."""
        lines = split_lines(self.content, keepends=True)
        first, last = (self.region.first, self.region.last) if self.region else (1, len(lines))
        if not first <= last <= len(lines):
            raise _wrong("region", f"the file has {len(lines)} lines and the region is {first} to {last}")
        if self.cursor:
            number, column = self.cursor.line, self.cursor.column
            if not first <= number <= last:
                raise _wrong("cursor", f"line {number} is not in the region, which is {first} to {last}")
            line = lines[number - 1]
            columns = len(line.rstrip("\r\n"))
            if column > columns + 1:
                raise _wrong("cursor", f"line {number} has {columns} columns, not {column}")
            # A column behind the last character is allowed: the cursor at the end of the line.
            lines[number - 1] = f"{line[: column - 1]}{CURSOR}{line[column - 1 :]}"
        # `_tag` ends the region with a line feed, so the region's own last one is dropped.
        before, region, after = lines[: first - 1], lines[first - 1 : last], lines[last:]
        return "".join([*before, _tag("code_to_edit", "".join(region).removesuffix("\n")), "\n", *after])


def declare(bridge: Bridge[Service], settings: MercurySettings) -> None:
    """Declare the edit tools."""
    completion_tool(
        bridge,
        "Merge an update into a file: give the original and a snippet with the changes. Returns the whole "
        "file as it is after the edit.",
        name=APPLY_EDIT,
        title="Mercury apply edit",
        settings=settings,
        model=settings.edit_model,
    )(apply_edit)
    completion_tool(
        bridge,
        "Predict the next edit of a file, from the cursor and the edits before. Returns the region as it is "
        "after the edit.",
        name=NEXT_EDIT,
        title="Mercury next edit",
        settings=settings,
        model=settings.edit_model,
    )(next_edit)


async def apply_edit(args: ApplyEdit, ctx: Context[Service]) -> Encoded | Answer[Completion]:
    """Apply an update to a file."""
    if args.original and args.file:
        raise _wrong("file", "`original` is given too; give one of them")
    if not args.original and not args.file:
        or_file = ", or its path as `file`" if ctx.state.settings.files else ""
        raise _wrong("original", f"it is missing; give the whole file{or_file}")
    if args.file:
        (args.original,) = await read_files([args.file], ctx)
    return await complete_code(APPLY_EDIT, EDIT, args, ctx)


async def next_edit(args: NextEdit, ctx: Context[Service]) -> Encoded | Answer[Completion]:
    """Predict the next edit."""
    return await complete_code(NEXT_EDIT, EDIT, args, ctx)


def _tag(name: str, content: str) -> str:
    return f"<|{name}|>\n{content}\n<|/{name}|>"


def _check_tags(**texts: str) -> None:
    """Refuse text that contains a tag of the API: it would end a part early, or start another."""
    for argument, text in texts.items():
        for tag in _TAGS:
            if tag in text:
                raise _wrong(argument, f"it holds the tag {tag}, which the API reads as its own")


def _wrong(argument: str, why: str) -> MercuryError:
    return MercuryError("INVALID_ARGUMENTS", f"The argument {argument} cannot be used: {why}.")
