"""Callers: whether the current caller may see details of the machine and of other callers. The host sets it.

Without a host there is one user, who may see everything.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from . import logs
from .errors import BridgeError, StorageError

is_operator: ContextVar[bool] = ContextVar("is_operator", default=True)
"""Whether the caller may see paths, and what other callers did: True without tokens, and for tokens that open
the dashboard, which shows the same."""

_charges: ContextVar[list[float] | None] = ContextVar("charges", default=None)
"""What the call under way has cost so far, in dollars; None outside of a call that is counted."""

_log = logs.logger("storage")


def count_charges() -> None:
    """Count what the call that begins now costs."""
    _charges.set([])


def charge(usd: float) -> None:
    """Add a cost to the call under way."""
    charges = _charges.get()
    if charges is not None:
        charges.append(usd)


def charged() -> float | None:
    """Return what the call under way has cost; None if it cost nothing."""
    return sum(_charges.get() or ()) or None


def hide_folder(text: str, path: str) -> str:
    """Leave the folder of a file out of a text, unless the caller is an operator."""
    if is_operator.get() or not path:
        return text
    folder, name = os.path.split(path)
    return text.replace(path, name).replace(folder, "its folder") if folder.strip("/\\") else text


def word_error(error: BridgeError) -> str:
    """Return the message and the next step of an error as the caller may read them; log the omitted part."""
    text = str(error)
    shown = hide_folder(text, error.path)
    if shown != text and isinstance(error, StorageError):
        _log.warn("a file cannot be used", path=error.path, problem=error.message)
    return shown
