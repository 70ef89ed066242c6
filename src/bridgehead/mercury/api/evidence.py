"""Evidence: what is known of a send when it has ended. Pure.

Nothing is decided here and nothing is filled in: a number that the API did not report stays missing.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..completion import Completion

MAX_REPORTS = 8


class Evidence(Struct, frozen=True):
    """What is known of one send."""

    is_written: bool
    """Whether any byte of it may have been sent. If not, the API certainly received nothing."""
    status: int | None = None
    """The HTTP status of the response; None if none came."""
    is_whole: bool = False
    """Whether the whole of an answer arrived."""
    usage: tuple[Any, ...] = ()
    """What the API reported as usage behind the last piece of the answer, as decoded JSON."""


NOTHING_WRITTEN = Evidence(is_written=False)
NOTHING_PROVEN = Evidence(is_written=True)


class Sent(Struct, frozen=True):
    """How one send ended: an answer, or why there is none; and what is known of its cost."""

    evidence: Evidence
    completion: Completion | None = None
    error: BaseException | None = None
    """A `MercuryError`, or that the caller was cancelled: raised once the send is booked."""
