"""Request ids: one for each request, to be found in logs, answers and errors alike."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from itertools import count

HEADER = b"x-request-id"
current: ContextVar[str] = ContextVar("request", default="")
"""The id of the request that is being served, for whatever is logged meanwhile."""
_GOOD = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,64}")


class RequestIds:
    """Takes the id that a client or proxy gave, or makes one that no other process makes."""

    def __init__(self) -> None:
        self._process = secrets.token_hex(4)
        self._numbers = count(1)

    def of(self, headers: dict[bytes, bytes]) -> str:
        """Return the id of a request. What could not be told from something else in a log is not taken."""
        given = headers.get(HEADER)
        if given is not None and _GOOD.fullmatch(given):
            return given.decode()
        return f"{self._process}-{next(self._numbers):x}"


def logged() -> dict[str, object]:
    """Give the fields that a line about the current request has."""
    request = current.get()
    return {"request": request} if request else {}
