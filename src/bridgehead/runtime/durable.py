"""Durable: replaces a file so that at every moment either the old or the new content is there, whole.

The new content goes to a temporary file beside the old one, is flushed to the disk, and takes its name; then
the folder is flushed, so that the new name survives a power cut too. What a killed process leaves behind are
temporary files only, which `sweep` removes. Locking against other writers is the caller's.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PRIVATE = 0o600
_PREFIX = ".bridgehead-"
_SUFFIX = ".tmp"
_STRAY_SECONDS = 60.0
"""A temporary file older than this has no writer any more: writing one takes far less."""


def replace(path: Path, data: bytes, *, mode: int = _PRIVATE) -> None:
    """Put new content into a file, on the disk before this returns; an OSError leaves the old one intact."""
    temporary = path.with_name(f"{_PREFIX}{os.urandom(8).hex()}{_SUFFIX}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        _fill(descriptor, data)
        os.replace(temporary, path)  # noqa: PTH105 - the same call, without making another path
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def _fill(descriptor: int, data: bytes) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder(folder: Path) -> None:
    # Not every system can flush a folder, and not every folder can be read; the new content is there anyway.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and those it is in, where they are missing, so that they survive a power cut too."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _flush_folder(folder.parent)


def sweep(folder: Path, now: float) -> int:
    """Remove the temporary files that killed processes left in a folder, and return how many there were."""
    swept = 0
    for stray in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        try:
            if now - stray.stat().st_mtime > _STRAY_SECONDS:
                stray.unlink()
                swept += 1
        except OSError:
            continue  # another process swept it first, or it is not ours to remove
    return swept
