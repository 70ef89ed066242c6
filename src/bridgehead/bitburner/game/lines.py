"""Lines: the one way in which all tools count the lines of a file."""

from __future__ import annotations


def split_lines(content: str) -> list[str]:
    """Return the lines without their ends.

    Only a line feed ends a line, as in the game's editor and in every editor's line numbers; form feeds and
    Unicode separators do not (so not `str.splitlines`). A line feed at the end of the file begins no new
    line.
    """
    lines = content.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in content else lines


def count_lines(content: str) -> int:
    """Return the number of lines; an empty file has none."""
    return content.count("\n") + (not content.endswith("\n") and bool(content))


def locate(content: str, at: int) -> tuple[int, int]:
    """Return line and column of a character, both counted from 1."""
    return content.count("\n", 0, at) + 1, at - content.rfind("\n", 0, at)
