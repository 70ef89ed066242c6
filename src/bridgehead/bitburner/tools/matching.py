"""Matching: the program that `search_files` runs in a process of its own, and its time limit.

Reads a job from standard input and writes the result to standard output. An alarm kills the process in the
middle of a match, which Python code cannot interrupt. On Windows, which has no alarms, the parent kills it
after its time limit. Imports are few and late, because the process starts for every search.
"""

from __future__ import annotations

import os
import re
import signal
import sys

import msgspec
from msgspec import Struct

from bridgehead.runtime.lines import split_lines

_MAX_LINE = 200
"""Characters shown of a line: 50 matches, text and structure together, then stay below 30,000."""


class Match(Struct, omit_defaults=True):
    """A line that matches; `server` is set if several were searched."""

    filename: str
    line: int
    text: str
    server: str = ""


class Job(Struct):
    """Input of the matching process."""

    pattern: str
    ignore_case: bool
    limit: int
    seconds: float
    files: list[tuple[str, str, str]]
    """Server (empty if only one is searched), path and content."""


class MatchResult(Struct):
    """Output of the matching process."""

    matches: list[Match] = []
    truncated: bool = False
    problem: str = ""
    ran_away: bool = False


def main() -> None:
    """Do one job."""
    if hasattr(os, "nice"):
        os.nice(10)  # other callers go first
    job = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Job)
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, job.seconds)  # the default action ends the process
    sys.stdout.buffer.write(msgspec.msgpack.encode(find_matches(job)))


def find_matches(job: Job) -> MatchResult:
    """Find the lines that match."""
    try:
        pattern = re.compile(job.pattern, re.IGNORECASE if job.ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as problem:
        return MatchResult(problem=str(problem))
    matches: list[Match] = []
    for server, filename, content in job.files:
        for number, line in enumerate(split_lines(content), start=1):
            if pattern.search(line) is None:
                continue
            # Looks for one match more than the limit, to know whether there are more.
            if len(matches) == job.limit:
                return MatchResult(matches, truncated=True)
            shown = line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}… ({len(line)} characters)"
            matches.append(Match(filename, number, shown, server))
    return MatchResult(matches)


if __name__ == "__main__":
    main()
