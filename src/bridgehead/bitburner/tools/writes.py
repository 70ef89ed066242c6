"""Writes: the tools that write, edit, move and delete a file, through `FileWriter`."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context, elicitation
from bridgehead.runtime.errors import InvalidArgument

from ..changes.edits import Replacement
from ..changes.file_writer import ChangeResult, Delete, EditText, Move, Write, check_size
from ..changes.last_seen import describe_overwritten
from ..errors import NOTHING_CHANGED, Declined, NotConfirmed
from ..game import paths
from ..session import Session
from .declaring import Filename, Server, ToolDeclarer
from .scripts import (
    ScriptProblem,
    describe_cost,
    describe_problems,
    find_importers,
    find_problems,
    measure_cost,
)

_MAX_NAMED = 5
MAX_BATCH = 50
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


class NewFile(Struct, forbid_unknown_fields=True):
    """A file of several."""

    filename: str
    content: str


class WriteFiles(Arguments):
    """Input of write_files."""

    files: Annotated[
        list[NewFile], Meta(min_length=1, max_length=MAX_BATCH, description=f"Up to {MAX_BATCH}")
    ]
    server: Server = paths.HOME


class EditFile(Arguments):
    """Input of edit_file."""

    filename: Filename
    old_text: (
        Annotated[str, Meta(min_length=1, description="The exact text to replace, whitespace included")]
        | None
    ) = None
    new_text: Annotated[str, Meta(description="What takes its place")] | None = None
    count: Annotated[
        int, Meta(ge=1, description="How often old_text must occur, by default 1; all are replaced")
    ] = 1
    edits: (
        Annotated[
            list[Edit],
            Meta(
                min_length=1,
                description="Several replacements instead of one, made in order: all of them or none",
            ),
        ]
        | None
    ) = None
    server: Server = paths.HOME


class Edit(Struct, forbid_unknown_fields=True):
    """One of several replacements."""

    old_text: Annotated[str, Meta(min_length=1)]
    new_text: str
    count: Annotated[int, Meta(ge=1)] = 1


class MoveFile(Arguments):
    """Input of move_file."""

    filename: Filename
    to: Annotated[str, Meta(min_length=1, description="The new path")]
    server: Server = paths.HOME
    to_server: Annotated[str, Meta(description="Another server, if it goes to one")] | None = None
    overwrite: Annotated[bool, Meta(description="Write over a file that has the new path already")] = False


class DeleteFile(Arguments):
    """Input of delete_file."""

    filename: Filename
    server: Server = paths.HOME


class Written(Struct):
    """Output of the tools that write a file."""

    result: Literal["OK"]
    filename: str
    server: str
    bytes: int
    ram_gb: float | None = None
    ram_problem: str | None = None
    kept_version: str | None = None
    problems: list[ScriptProblem] = []


class WrittenFiles(Struct):
    """Output of write_files."""

    result: Literal["OK"]
    files: list[Written]


class Moved(Struct):
    """Output of move_file."""

    result: Literal["OK"]
    filename: str
    server: str
    kept_version: str | None = None
    imported_by: list[str] = []


class Deleted(Struct):
    """Output of delete_file."""

    result: Literal["OK"]
    kept_version: str | None = None
    imported_by: list[str] = []


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.write_tool(
        "Write a file",
        "Write a whole file in the Bitburner game; the previous content is kept for restore_file. Answers "
        "OK, the RAM cost of a script, and problems such as ns functions that do not exist. For a small "
        "change use edit_file.",
        destructive=True,
        effect="overwrites",
        idempotent=True,
    )(write_file)
    tools.write_tool(
        "Write several files",
        "Write whole files in the Bitburner game: all or, if one fails, none. restore_file undoes it. "
        "Answers as write_file.",
        destructive=True,
        effect="overwrites",
        idempotent=True,
    )(write_files)
    tools.write_tool(
        "Delete a file",
        "Delete a file in the Bitburner game; its content is kept for restore_file. The user may be asked "
        "first. Answers OK, and the scripts that import the file.",
        destructive=True,
        effect="deletes",
        idempotent=False,
    )(delete_file)
    tools.write_tool(
        "Edit a file",
        "Replace an exact text in a file of the Bitburner game, or several with edits; refused unless each "
        "occurs exactly count times. The previous content is kept for restore_file.",
        destructive=True,
        effect="edits",
        idempotent=False,
    )(edit_file)
    tools.write_tool(
        "Move a file",
        "Rename a file in the Bitburner game, or move it to another server, without reading it. Answers "
        "OK, and the scripts that import it under its old path, which you then have to edit.",
        destructive=True,
        effect="moves",
        idempotent=False,
    )(move_file)


async def write_file(args: WriteFile, ctx: Context[Session]) -> Answer[Written]:
    """Write a whole file."""
    session = ctx.state
    name, on = paths.validate_filename(args.filename), paths.validate_server(args.server)
    check_size(args.content, session.write_max_bytes)
    write = Write(on, name, args.content, if_match=args.if_match)
    outcome = await session.writer.apply(write, session.name_agent(ctx))
    written, notes = await describe_written(session, on, name, outcome)
    return Answer("OK", written, notes=notes)


async def write_files(args: WriteFiles, ctx: Context[Session]) -> Answer[WrittenFiles]:
    """Write several files, all or none."""
    session, on = ctx.state, paths.validate_server(args.server)
    writes: dict[str, Write] = {}
    for file in args.files:
        name = paths.validate_filename(file.filename)
        check_size(file.content, session.write_max_bytes, name)
        if name in writes:
            raise InvalidArgument(
                f"{name} is given twice. {NOTHING_CHANGED}", next_step="Give each file once."
            )
        writes[name] = Write(on, name, file.content, "write_files")
    outcomes = await session.batches.write(list(writes.values()), session.name_agent(ctx))
    files: list[Written] = []
    notes: list[str] = []
    for name, outcome in zip(writes, outcomes, strict=True):
        # After all are written: a script may import another one of them.
        written, file_notes = await describe_written(session, on, name, outcome)
        files.append(written)
        notes += [f"{name}: {note}" for note in file_notes]
    return Answer(f"OK. Wrote {len(files)} files.", WrittenFiles("OK", files), notes=tuple(notes))


async def edit_file(args: EditFile, ctx: Context[Session]) -> Answer[Written]:
    """Replace exact texts in a file."""
    session = ctx.state
    name, on = paths.validate_filename(args.filename), paths.validate_server(args.server)
    if args.edits is not None and args.old_text is None and args.new_text is None:
        edits = [Replacement(edit.old_text, edit.new_text, edit.count) for edit in args.edits]
    elif args.edits is None and args.old_text is not None and args.new_text is not None:
        edits = [Replacement(args.old_text, args.new_text, args.count)]
    else:
        raise InvalidArgument(
            f"Either old_text and new_text or edits must be given. {NOTHING_CHANGED}",
            next_step="Give old_text and new_text for one replacement, edits for several.",
        )
    edit = EditText(on, name, edits, session.write_max_bytes)
    outcome = await session.writer.apply(edit, session.name_agent(ctx))
    written, notes = await describe_written(session, on, name, outcome)
    return Answer(f"OK. Replaced {sum(edit.count for edit in edits)} in {name}.", written, notes=notes)


async def delete_file(args: DeleteFile, ctx: Context[Session]) -> Answer[Deleted]:
    """Delete a file."""
    name, on = paths.validate_filename(args.filename), paths.validate_server(args.server)
    # Before the delete: the user is asked with the scripts that would break.
    importers = await find_importers(ctx.state, on, name)
    imported = f"It is imported by {', '.join(importers)}." if importers else ""
    # No tool names here: people read it, and restore_file may not be offered.
    undo = "Its content is kept and can be restored." if ctx.state.history.is_on else ""
    words = " ".join(part for part in (f"Delete {name} on {on}?", imported, undo) if part)
    question = elicitation(words, _AGREEMENT)
    # A client without elicitation cannot ask: the delete goes ahead, and the content is kept for
    # restore_file.
    if ctx.state.settings.confirm_delete and ctx.can_ask(question):
        answer = (await ctx.ask({"delete": question}))["delete"]
        if answer.action == "decline":
            raise Declined(
                f"The user was asked and did not agree. {NOTHING_CHANGED}",
                next_step="Ask the user what to do.",
            )
        # Clients without a user, such as agents that run in a pipeline, cancel every question.
        if answer.action == "cancel":
            raise NotConfirmed(
                f"Nobody answered the question whether to delete {name}. {NOTHING_CHANGED}",
                next_step="Ask the user. Where nobody can be asked, the user can set "
                f"BITBURNER_CONFIRM_DELETE=0. {undo}".rstrip(),
            )
    outcome = await ctx.state.writer.apply(Delete(on, name), ctx.state.name_agent(ctx))
    notes = [f"{imported} These scripts no longer run."] if imported else []
    return Answer(
        "OK",
        Deleted("OK", outcome.kept_version, importers),
        notes=(*notes, *describe_outcome(ctx.state, outcome)),
    )


async def move_file(args: MoveFile, ctx: Context[Session]) -> Answer[Moved]:
    """Rename a file, or move it to another server."""
    name, on = paths.validate_filename(args.filename), paths.validate_server(args.server)
    to, to_server = paths.validate_filename(args.to), paths.validate_server(args.to_server or args.server)
    importers = await find_importers(ctx.state, on, name)
    move = Move(on, name, to_server, to, args.overwrite)
    outcome = await ctx.state.writer.apply(move, ctx.state.name_agent(ctx))
    next_steps = (f"Edit {', '.join(importers)}: they import it under its old path.",) if importers else ()
    return Answer(
        f"OK. {name} is now {to}{f' on {to_server}' if to_server != on else ''}.",
        Moved("OK", to, to_server, outcome.kept_version, importers),
        notes=describe_outcome(ctx.state, outcome),
        next=next_steps,
    )


async def describe_written(
    session: Session, on: str, name: str, outcome: ChangeResult
) -> tuple[Written, tuple[str, ...]]:
    """Return the output for a file that was written, and notes: cost, problems, what was replaced."""
    written = Written("OK", name, on, len(outcome.content.encode()), kept_version=outcome.kept_version)
    if name.endswith(".json"):
        written.problems = await find_problems(session, on, name, outcome.content)
    if paths.is_script(name):
        # Both at once: a thread checks the script while the game calculates its cost.
        (written.ram_gb, written.ram_problem), written.problems = await asyncio.gather(
            measure_cost(session, name, on), find_problems(session, on, name, outcome.content)
        )
        for problem in written.problems if written.ram_gb is not None else ():
            # The game has parsed the script, so this may be a gap in our grammar.
            problem.when = "maybe" if problem.code == "syntax_error" else problem.when
    remarks = (describe_cost(written.ram_gb, written.ram_problem), describe_problems(written.problems))
    return written, (*filter(None, remarks), *describe_outcome(session, outcome))


def describe_outcome(session: Session, outcome: ChangeResult) -> tuple[str, ...]:
    """Return notes: content that was replaced unseen or could not be kept, and that versions are dropped.

    A full store drops one with every write: that is told once, and then by connection_status.
    """
    notes = [] if outcome.overwritten is None else [describe_overwritten(outcome.overwritten)]
    if outcome.warning:
        notes.append(outcome.warning)
    is_first = not session.dropped_versions
    session.dropped_versions += len(outcome.dropped)
    if outcome.dropped and is_first:
        names = ", ".join(
            f"{version.version} of {version.filename}" for version in outcome.dropped[:_MAX_NAMED]
        )
        more = len(outcome.dropped) - _MAX_NAMED
        names += f" and {more} more" if more > 0 else ""
        notes.append(f"To make room, the oldest kept versions were dropped: {names}.")
    return tuple(notes)
