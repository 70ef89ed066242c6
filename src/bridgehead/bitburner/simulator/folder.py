"""Folder: takes the files of a simulated home server from a folder on this machine, which is only read."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from bridgehead.runtime.errors import NotFound

from .names import is_script, is_text, resolve


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
