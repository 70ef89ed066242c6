"""Cookie: the user's session cookie for the site, in a private file or the system's keyring.

Treat it as a password: it appears in no log, error or output, and is sent to the site only.
"""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path
from typing import Any

from bridgehead.runtime import durable
from bridgehead.runtime.directories import make_private
from bridgehead.runtime.errors import InvalidArgument, StorageError, Unavailable

_SERVICE, _ACCOUNT = "bridgehead aoc", "session"
_COOKIE = re.compile(r"[0-9a-fA-F]{32,256}")
_OTHERS = 0o077


def parse_cookie(text: str) -> str:
    """Return the cookie's value from pasted text, with or without its name."""
    # Pasted from a browser's developer tools it may be `session=…`, or in quotes.
    value = text.strip().removeprefix("session=").strip().strip('"')
    if not _COOKIE.fullmatch(value):
        raise InvalidArgument(
            "This is not a session cookie.",
            next_step="Copy the value of the cookie named 'session' from your browser: 32 to 256 hex digits.",
        )
    return value


def save_cookie(path: Path, cookie: str) -> None:
    """Write the cookie to a file that only this user can read."""
    make_private(path.parent)
    try:
        durable.replace(path, f"{cookie}\n".encode(), mode=0o600)
    except OSError as failure:
        raise StorageError(f"{path} cannot be written: {failure.strerror or failure}.") from failure


def save_in_keyring(cookie: str) -> None:
    """Store the cookie in the system's keyring."""
    keyring = _load_keyring()
    if keyring is None:
        raise Unavailable(
            "The package keyring is not installed.", next_step="pip install keyring, or leave out --keyring."
        )
    try:
        keyring.set_password(_SERVICE, _ACCOUNT, cookie)
    except Exception as failure:  # each backend has errors of its own
        raise _locked(failure) from failure


def read_cookie(path: Path) -> str:
    """Return the user's cookie, from the file or else from the keyring."""
    try:
        status = path.stat()
        text = durable.read(path).decode("ascii", errors="replace")
    except FileNotFoundError:
        keyring = _load_keyring()
        try:
            text = "" if keyring is None else keyring.get_password(_SERVICE, _ACCOUNT) or ""
        except Exception as failure:  # each backend has errors of its own
            raise _locked(failure) from failure
    except OSError as failure:
        raise StorageError(f"{path} cannot be read: {failure.strerror or failure}.") from failure
    else:
        if sys.platform != "win32" and stat.S_IMODE(status.st_mode) & _OTHERS:
            raise StorageError(
                f"Others can read {path}, and with it use your account.", next_step=f"Run: chmod 600 {path}"
            )
    if not text:
        raise Unavailable(
            "Your session cookie is not known here.",
            next_step="Log in on the site with your browser, then run `bridgehead aoc cookie` and paste it.",
        )
    return parse_cookie(text)


def _locked(failure: Exception) -> Unavailable:
    # Without the backend's own message: it may contain the cookie.
    return Unavailable(
        f"The system's keyring cannot be used ({type(failure).__name__}).",
        next_step="Unlock it, or keep the cookie in a file: run `bridgehead aoc cookie` without --keyring.",
    )


def _load_keyring() -> Any:
    """Return the keyring package, an optional dependency; None if it is not installed."""
    from importlib import import_module

    try:
        return import_module("keyring")
    except ImportError:
        return None
