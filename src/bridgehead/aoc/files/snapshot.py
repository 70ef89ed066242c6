"""Snapshot: reads a whole file as it is at one moment, and tells whether it is still the same one.

Nothing that stands in the place of a file can make a reader wait or run out of memory: only regular files are
read, up to a size. Every failure is a `StorageError` that names the file and what to do.
"""

# ruff: noqa: PTH112, PTH116 - pathlib would delay the server's first answer

from __future__ import annotations

import os
import stat
import sys
from typing import NamedTuple

import msgspec

from bridgehead.runtime import durable
from bridgehead.runtime.errors import StorageError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some editors put in front of UTF-8; it is not part of any text."""
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a file's JSON can raise."""

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NOT_A_FILE = "it is not a file but a folder or something else"
_CHUNK = 64 * 1024
"""Small, since it is asked for once in vain after every file: a large one costs more than the file."""


class Identity(NamedTuple):
    """What changes when a file's content does: each replacement is another file, each write another time."""

    inode: int
    size: int
    modified: int
    changed: int


class Snapshot(NamedTuple):
    """A file's content, and which file that was."""

    data: bytes
    identity: Identity


def identify(path: str) -> Identity | None:
    """Tell which file there is right now; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return _identity(status) if stat.S_ISREG(status.st_mode) else None


def _identity(status: os.stat_result) -> Identity:
    return Identity(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def read_snapshot(path: str, most: int) -> Snapshot | None:
    """Read a file of at most so many bytes; None where there is no such file."""
    try:
        descriptor = _open(path)
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise unreadable(path, failure.strerror or str(failure)) from failure
    try:
        return _read(descriptor, most)
    except OSError as failure:
        raise unreadable(path, failure.strerror or str(failure)) from failure
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    if sys.platform == "win32" and os.path.isdir(path):  # refused there like a file that somebody has open
        raise OSError(_NOT_A_FILE)
    return durable.retry_while_locked(lambda: os.open(path, _OPEN))


def _read(descriptor: int, most: int) -> Snapshot:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(_NOT_A_FILE)
    if status.st_size > most:
        raise OSError(f"it has {status.st_size:,} bytes, and the limit is {most:,}")
    data = os.read(descriptor, status.st_size + 1)
    while more := os.read(descriptor, _CHUNK):  # it grew meanwhile, or came in pieces
        data += more
    return Snapshot(data, _identity(status))


def unreadable(path: str, problem: str) -> StorageError:
    """Say that a file cannot be read, and what to do about it."""
    return StorageError(
        f"{path} cannot be read: {problem}.",
        next_step="Put a readable file in its place, or move away what is there.",
    )
