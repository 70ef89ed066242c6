"""Matching: the program that `search_files` runs in a process of its own, and its time limit.

Reads a job from standard input and writes the outcome to standard output. The alarm ends the process in the
middle of a match, which nothing in the language could; without an alarm (on Windows) the parent's limit does.
Its values are defined here, and dear modules are loaded where they are used, so that both sides start fast.
"""

from __future__ import annotations

import sys

import msgspec
from msgspec import Struct

from bridgehead.bitburner.game.lines import split_lines

_LONGEST_LINE = 300


class Match(Struct, omit_defaults=True):
    """A line that matches; `server` where several were searched."""

    filename: str
    line: int
    text: str
    server: str = ""


class Job(Struct):
    """What the matching process is given."""

    pattern: str
    ignore_case: bool
    most: int
    seconds: float
    files: list[tuple[str, str, str]]
    """Server, where that is told; path; content."""


class MatchResult(Struct):
    """What the matching process answers."""

    matches: list[Match] = []
    truncated: bool = False
    problem: str = ""
    ran_away: bool = False


def main() -> None:
    """Do one job."""
    import signal

    job = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Job)
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, job.seconds)  # the default action ends the process
    sys.stdout.buffer.write(msgspec.msgpack.encode(find_matches(job)))


def find_matches(job: Job) -> MatchResult:
    """Find the lines that match."""
    import re

    try:
        pattern = re.compile(job.pattern, re.IGNORECASE if job.ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as problem:
        return MatchResult(problem=str(problem))
    matches: list[Match] = []
    for server, filename, content in job.files:
        for number, line in enumerate(split_lines(content), start=1):
            if pattern.search(line) is None:
                continue
            if len(matches) == job.most:
                return MatchResult(matches, truncated=True)
            matches.append(Match(filename, number, _shorten(line), server))
    return MatchResult(matches)


def _shorten(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}… ({len(line)} characters)"


if __name__ == "__main__":
    main()
