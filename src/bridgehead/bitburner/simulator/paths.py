"""Names: which paths and extensions the game takes, by generation.

Written from what the game was seen to do, and deliberately without the bridge's own rules: a slip in those
must show when they meet this.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from bridgehead.runtime.errors import NotFound

SCRIPTS = (".js", ".jsx", ".ts", ".tsx", ".script")
TEXTS = {2: (".txt", ".json"), 3: (".txt", ".json", ".css")}
PROGRAM = ".exe"

_FORBIDDEN = frozenset("*?[]!\\~|#\"' ")


def resolve(name: str) -> str | None:
    """Return the path that a name means, or None where the game refuses it."""
    if name.startswith("/"):
        parts: list[str] | None = name[1:].split("/")
        if {".", ".."} & set(parts or ()):
            return None  # steps are walked in relative paths only
    else:
        parts = _walk(name.split("/"))
    if parts is None or not all(_is_part(part) for part in parts) or not _is_file(parts[-1]):
        return None
    return "/".join(parts)


def _walk(parts: list[str]) -> list[str] | None:
    """Take the steps `.` and `..` out of a path; None where they lead above its root."""
    walked: list[str] = []
    for part in parts[:-1]:
        if part == "..":
            if not walked:
                return None
            walked.pop()
        elif part != ".":
            walked.append(part)
    return [*walked, parts[-1]]


def _is_part(part: str) -> bool:
    return bool(part) and not _FORBIDDEN & set(part)


def _is_file(part: str) -> bool:
    """Tell whether there is something on both sides of some dot."""
    return "." in part[1:-1]


def is_script(path: str) -> bool:
    """Tell whether a path has the extension of a script."""
    return path.endswith(SCRIPTS)


def is_text(path: str, generation: int) -> bool:
    """Tell whether a path has the extension of a text in this generation."""
    return path.endswith(TEXTS[generation])


class Taken(Struct, frozen=True):
    """The files that a game can hold, and the names of those that it cannot."""

    files: dict[str, str]
    left_out: tuple[str, ...]


def take(folder: Path, generation: int) -> Taken:
    """Read a folder with all that is in it."""
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", next_step="Name one that is there with --files.")
    files: dict[str, str] = {}
    left_out: list[str] = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.relative_to(folder).as_posix()
        content = _content(file, name, generation)
        if content is None:
            left_out.append(name)
        else:
            files[name] = content
    return Taken(files, tuple(left_out))


def _content(file: Path, name: str, generation: int) -> str | None:
    if resolve(name) != name or not (is_script(name) or is_text(name, generation)):
        return None
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
