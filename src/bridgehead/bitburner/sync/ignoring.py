"""Ignoring: which files of a folder are ignored, with the syntax of .gitignore. Pure.

A pattern without a slash fits a name in any folder; one with a slash, the path from the folder. A slash at
the end means folders only, `!` negates an earlier pattern, and the last match decides. A file in an ignored
folder is ignored, whatever else matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

DEFAULTS = (".*", "node_modules/", "package-lock.json")
"""Ignored unless a pattern of the user re-includes it: files of editors, git and package managers."""


class _Pattern(Struct, frozen=True):
    regex: re.Pattern[str]
    is_negated: bool
    is_for_folders: bool


class IgnoreRules:
    """The patterns of one folder."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns = [pattern for line in lines if (pattern := _parse(line)) is not None]

    def ignores(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether a path, with slashes and relative to the folder, is ignored."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if self._fits("/".join(parts[:depth]), is_folder=True):
                return True
        return self._fits(path, is_folder=is_folder)

    def _fits(self, path: str, *, is_folder: bool) -> bool:
        for pattern in reversed(self._patterns):
            if (is_folder or not pattern.is_for_folders) and pattern.regex.fullmatch(path):
                return not pattern.is_negated
        return False


def _parse(line: str) -> _Pattern | None:
    text = line.rstrip("\r\n").rstrip(" ")
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    text = text.removeprefix("!").removeprefix("\\") if is_negated or text[:2] in ("\\#", "\\!") else text
    is_for_folders = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    any_folder = "" if "/" in text else "(?:.*/)?"
    try:
        regex = re.compile(any_folder + _translate(text.removeprefix("/")), re.DOTALL)
    except re.error:
        return None  # such as `[z-a]`, which fits nothing in git either
    return _Pattern(regex, is_negated, is_for_folders)


def _translate(text: str) -> str:
    """Return the regular expression of a pattern."""
    groups: list[list[str]] = [[""]]
    """Split at `**/` into groups, and each group at its stars into pieces."""
    at = 0
    while at < len(text):
        rest = text[at:]
        if rest.startswith("**/") and (at == 0 or text[at - 1] == "/"):
            groups.append([""])
            at += 3
        elif rest == "**" and text[at - 1 : at] == "/":
            groups[-1][-1] += ".+"
            at += 2
        elif rest[0] == "*":
            groups[-1].append("")
            at += len(rest) - len(rest.lstrip("*"))  # several stars mean one
        elif rest[0] == "?":
            groups[-1][-1] += "[^/]"
            at += 1
        elif rest[0] == "[" and (end := rest.find("]", 2)) > 0:
            inside = rest[1:end].replace("\\", "\\\\").replace("[", "\\[")
            negation = "^/" if inside[0] in "!^" else ""
            groups[-1][-1] += f"[{negation}{inside[1:] if negation else inside}]"
            at += end + 1
        else:
            escaped = rest[0] == "\\" and len(rest) > 1
            groups[-1][-1] += re.escape(rest[1] if escaped else rest[0])
            at += 2 if escaped else 1
    return _join("(?:.*/)?", "(?:.*?/)??", [_join("[^/]*", "[^/]*?", pieces) for pieces in groups])


def _join(wildcard: str, shortest: str, pieces: list[str]) -> str:
    """Join expressions by a wildcard, so that matching takes time proportional to the text.

    Before the last wildcard, the first place where a piece fits is as good as any later one. Atomic groups
    keep it without backtracking; otherwise `*a*a*a*a*b` would try every way to split the text.
    """
    first, *others = pieces
    middle = "".join(f"(?>{shortest}{piece})" for piece in others[:-1])
    return first + middle + "".join(wildcard + piece for piece in others[-1:])
