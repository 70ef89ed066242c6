"""Paths: which paths and extensions the game accepts, by generation.

Written from observed behaviour of the game, without using the bridge's own rules, so that tests against this
module show mistakes in them.
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
    """Return the path that a name resolves to; None if the game refuses it."""
    *folders, file = name.removeprefix("/").split("/")
    if name.startswith("/"):
        if {".", ".."} & {*folders, file}:
            return None  # `.` and `..` are resolved in relative paths only
        walked = folders
    else:
        walked = []
        for part in folders:
            if part == "..":
                if not walked:
                    return None  # above the root
                walked.pop()
            elif part != ".":
                walked.append(part)
    parts = [*walked, file]
    # A file needs a dot with something on both sides.
    if not all(parts) or _FORBIDDEN & set("".join(parts)) or "." not in file[1:-1]:
        return None
    return "/".join(parts)


def is_script(path: str) -> bool:
    """Return whether a path has the extension of a script."""
    return path.endswith(SCRIPTS)


def is_text(path: str, generation: int) -> bool:
    """Return whether a path has the extension of a text in this generation."""
    return path.endswith(TEXTS[generation])


class GameFolder(Struct, frozen=True):
    """The files of a folder that a game can hold, and the names of the others."""

    files: dict[str, str]
    left_out: tuple[str, ...]


def read_folder(folder: Path, generation: int) -> GameFolder:
    """Read a folder and its subfolders."""
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", next_step="Name one that is there with --files.")
    files: dict[str, str] = {}
    left_out: list[str] = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.relative_to(folder).as_posix()
        try:
            if resolve(name) == name and (is_script(name) or is_text(name, generation)):
                files[name] = file.read_bytes().decode()
                continue
        except (OSError, UnicodeDecodeError):
            pass  # unreadable, or not a text
        left_out.append(name)
    return GameFolder(files, tuple(left_out))
