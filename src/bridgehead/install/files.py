"""Files: reads and replaces configuration files on this machine, with a backup of each before it changes."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path, PurePath
from types import ModuleType

from bridgehead.runtime import durable

from .errors import InstallError, malformed

BACKUPS = 5
"""How many former states of a file are kept beside it."""
_PRIVATE = 0o600
_OWN_WRITE = 0o200
LOCK_SECONDS = 10.0
_AGAIN_SECONDS = 0.02
_LOCK_FILE = ".bridgehead-install.lock"


@contextmanager
def alone(home: str, within: float = LOCK_SECONDS) -> Iterator[None]:
    """Keep other installations of this user waiting meanwhile, where the system can.

    It is the home folder that is locked: it is there, and no file is left behind. Windows cannot lock one;
    there it is a file in it, which is gone afterwards.
    """
    try:
        import fcntl
    except ImportError:
        with _alone_by_file(Path(home) / _LOCK_FILE, within) if Path(home).is_dir() else nullcontext():
            yield
        return
    try:
        folder = os.open(home, os.O_RDONLY)
    except OSError:  # a user without a home has nothing to be shared either
        yield
        return
    try:
        until = time.monotonic() + within
        while not _locked(fcntl, folder):
            if time.monotonic() > until:
                raise _not_alone()
            time.sleep(_AGAIN_SECONDS)
        yield
    finally:
        os.close(folder)


@contextmanager
def _alone_by_file(path: Path, within: float) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=within, poll_interval=_AGAIN_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise _not_alone() from None
    except OSError:  # a home that cannot be written to has nothing to be shared either
        yield
        return
    try:
        yield
    finally:
        lock.release()
        with suppress(OSError):  # the next one has it already
            path.unlink()


def _not_alone() -> InstallError:
    return InstallError("Another bridgehead install is still running.", next_step="Run this again.")


def _locked(fcntl: ModuleType, descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as failure:
        if failure.errno in (errno.EAGAIN, errno.EACCES):
            return False
        # and a file system without locks has none
    return True


def choose(places: Iterable[PurePath]) -> Path:
    """Return the first place with a file, or else with a folder, or else the last."""
    candidates = [found for place in places for found in _expand(place)]
    with_file = [path for path in candidates if path.is_file()]
    with_folder = [path for path in candidates if path.parent.is_dir()]
    return [*with_file, *with_folder, candidates[-1]][0]


def exists(place: PurePath) -> bool:
    """Tell whether there is something at a place, which may be a pattern."""
    return any(path.exists() for path in _expand(place))


def _expand(place: PurePath) -> list[Path]:
    path = Path(place)
    if "*" not in str(path):
        return [path]
    index = next(number for number, part in enumerate(path.parts) if "*" in part)
    folder = Path(*path.parts[:index])
    # Only the part with the * has to be there; the client may not have made the rest yet.
    return [found.joinpath(*path.parts[index + 1 :]) for found in sorted(folder.glob(path.parts[index]))]


def read(path: Path) -> str | None:
    """Return the text of a file with its line endings as they are; None if it is not there."""
    try:
        data = durable.read(path)
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise InstallError(f"{path} cannot be read: {failure.strerror}.") from failure
    try:
        return data.decode()
    except UnicodeDecodeError as failure:
        before = data[: failure.start].decode()
        where = malformed("this is not UTF-8", before, len(before))
        raise InstallError(f"{path}:{where}. Nothing was written.") from None


def write(path: Path, before: str | None, after: str | None, stamp: str) -> Path | None:
    """Bring a file from one text to another, or away with it, and return the backup that was made."""
    real = path.resolve()  # a link stays one, and what it leads to changes
    if read(real) != before:
        raise InstallError(f"{path} was changed by another program just now.", next_step="Run this again.")
    if before is not None and not real.stat().st_mode & _OWN_WRITE:
        problem = f"{path} is read-only. Nothing was written."
        raise InstallError(problem, next_step="Make it writable, or change it where it comes from.")
    try:
        return _write(real, before, after, stamp)
    except OSError as failure:
        raise InstallError(f"{path} cannot be written: {failure.strerror}. It is as it was.") from failure


def _write(path: Path, before: str | None, after: str | None, stamp: str) -> Path | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if before is not None else _PRIVATE
    backup = None
    if before is not None:
        backup = path.with_name(f"{path.name}.bridgehead-{stamp}.bak")
        durable.replace(backup, before.encode(), mode=mode & _PRIVATE)
    if after is None:
        durable.remove(path)
    else:
        durable.replace(path, after.encode(), mode=mode)
        path.chmod(mode)  # a new file has less than this where the user's mask says so
    _prune(path)
    return backup


def _prune(path: Path) -> None:
    pattern = re.compile(re.escape(path.name) + r"\.bridgehead-[0-9TZ.]+\.bak")
    backups = sorted(other for other in path.parent.iterdir() if pattern.fullmatch(other.name))
    for old in backups[:-BACKUPS]:
        with suppress(PermissionError):  # on Windows, somebody reads it; the next change prunes it
            old.unlink(missing_ok=True)
