"""Lines: the one way in which files and other people's text are split into lines."""

from __future__ import annotations

from io import StringIO


def split_lines(content: str, *, keepends: bool = False) -> list[str]:
    """Return the lines, without their ends unless these are kept.

    Only a line feed ends a line, as in every editor's line numbers; form feeds and Unicode separators do not
    (so never `str.splitlines`). A line feed at the end of the file begins no new line.
    """
    if keepends:
        return list(StringIO(content))
    lines = content.removesuffix("\n").split("\n") if content else []
    return [line.removesuffix("\r") for line in lines] if "\r" in content else lines


def count_lines(content: str) -> int:
    """Return the number of lines; an empty file has none."""
    return content.count("\n") + (not content.endswith("\n") and bool(content))


def locate(content: str, at: int) -> tuple[int, int]:
    """Return line and column of a character, both counted from 1."""
    return content.count("\n", 0, at) + 1, at - content.rfind("\n", 0, at)
