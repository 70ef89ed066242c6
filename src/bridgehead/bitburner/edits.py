"""Edits: the tool that replaces an exact text in a file."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bridgehead.mcp import Answer, Arguments, Context
from bridgehead.runtime.errors import InvalidArgument, NotFound

from . import paths
from .arguments import Filename, Server
from .session import Session
from .toolbox import Toolbox
from .writes import NOTHING_CHANGED, Written, check_size, rewrite, told_cost


class EditFile(Arguments):
    """Input of edit_file."""

    filename: Filename
    old_text: Annotated[str, Meta(min_length=1, description="The exact text to replace, whitespace included")]
    new_text: Annotated[str, Meta(description="What takes its place")]
    count: Annotated[int, Meta(ge=1, description="How often old_text must occur; all are replaced")] = 1
    server: Server = paths.HOME


def declare(tools: Toolbox) -> None:
    """Declare the tools of this module."""
    tools.writes(
        "Edit a file",
        "Replace an exact text in a file; refused unless it occurs exactly count times. The previous content "
        "is kept for restore_file.",
        destructive=True,
        idempotent=False,
    )(edit_file)


async def edit_file(args: EditFile, ctx: Context[Session]) -> Answer[Written]:
    """Replace an exact text in a file."""
    name, on = paths.filename(args.filename), paths.server(args.server)
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
