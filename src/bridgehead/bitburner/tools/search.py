"""Search: the tool that finds lines in files by a regular expression.

The matching runs in a process of its own, because some patterns would run for years, and only a process can
be killed in the middle of a match. Starting it takes about 50 ms per search. (A linear-time matcher would
need a compiled dependency for this one tool.)
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context
from bridgehead.runtime.errors import InvalidArgument

from ..errors import PatternTooSlow
from ..game import paths
from ..session import Session
from .declaring import MAX_QUERY, Glob, Server, ToolDeclarer
from .files import describe_damage, describe_no_match
from .matching import Job, Match, MatchResult

SEARCH_SECONDS = 3.0
"""How long a pattern may run. A normal one takes milliseconds over all files of a game."""
_START_SECONDS = 10.0
"""Time to start the process on a busy machine, beyond the pattern's own limit."""


class SearchFiles(Arguments):
    """Input of search_files."""

    pattern: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_QUERY,
            description="Regular expression (Python's), a line at a time",
        ),
    ]
    server: Server = paths.HOME
    all_servers: Annotated[bool, Meta(description="Search every server with root access instead of one")] = (
        False
    )
    glob: Glob | None = None
    ignore_case: bool = False
    max_matches: Annotated[int, Meta(ge=1, le=1000, description="Up to 1000; default 50")] = 50


class Matches(Struct):
    """Output of search_files."""

    matches: list[Match]
    files_searched: int
    truncated: bool = False


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "Search files",
        "Find lines in files of the Bitburner game by a regular expression. Answers filename:line: text for "
        "each, at most max_matches.",
        may_take_long=True,
    )(search_files)


async def search_files(args: SearchFiles, ctx: Context[Session]) -> Answer[Matches]:
    """Find lines."""
    remote = ctx.state.remote
    # The turn begins before the files are read: searches that wait for one would each hold a whole server.
    async with ctx.state.searches.take():
        if args.all_servers:
            servers = [listed.hostname for listed in await remote.list_servers() if listed.hasAdminRights]
            contents = await asyncio.gather(*(remote.read_all(server) for server in servers))
            candidates = [
                (server, file.filename, file.content)
                for server, all_files in zip(servers, contents, strict=True)
                for file in all_files
            ]
        else:
            all_files = await remote.read_all(paths.validate_server(args.server))
            candidates = [("", file.filename, file.content) for file in all_files]
        files = [candidate for candidate in candidates if paths.matches(candidate[1], args.glob)]
        if not files:
            no_match = describe_no_match(args.glob, len(candidates))
            return Answer("There is nothing to search.", Matches([], 0), notes=(no_match,))
        outcome = await _run_matching(
            Job(args.pattern, args.ignore_case, args.max_matches, SEARCH_SECONDS, files)
        )
    if outcome.problem:
        raise InvalidArgument(
            f"The pattern cannot be used: {outcome.problem}.",
            next_step="Correct it; escape what is meant literally.",
        )
    if outcome.ran_away:
        raise PatternTooSlow(
            f"The pattern was stopped after {SEARCH_SECONDS:g} s.",
            next_step="Avoid repetitions inside of repetitions, such as (a+)+, or narrow it with glob.",
        )
    lines = [
        f"{f'{match.server}:' if match.server else ''}{match.filename}:{match.line}: {match.text}"
        for match in outcome.matches
    ]
    text = "\n".join(lines) or f"No line in {len(files)} files matches."
    shown = {(match.server, match.filename) for match in outcome.matches}
    in_answer = [(name, content) for on, name, content in files if (on, name) in shown]
    notes = describe_damage(ctx.state, in_answer)
    next_steps: tuple[str, ...] = ()
    if outcome.truncated:
        notes.insert(0, f"There are more than these {len(lines)} matches.")
        next_steps = ("Narrow pattern or glob, or raise max_matches.",)
    matches = Matches(outcome.matches, len(files), outcome.truncated)
    return Answer(text, matches, notes=tuple(notes), next=next_steps)


async def _run_matching(job: Job) -> MatchResult:
    """Match in a separate process, which has ended when this returns or raises."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bridgehead.bitburner.tools.matching",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(job.seconds + _START_SECONDS):
            written, _ = await process.communicate(msgspec.msgpack.encode(job))
    except TimeoutError:
        return MatchResult(ran_away=True)
    finally:
        # After a timeout, and also if the call itself is cancelled.
        if process.returncode is None:
            process.kill()
            await process.wait()
    return msgspec.msgpack.decode(written, type=MatchResult) if written else MatchResult(ran_away=True)
