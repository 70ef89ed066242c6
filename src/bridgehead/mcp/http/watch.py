"""Watch: notices which requests take long, so that only those are watched for their client hanging up.

One timer for all requests of an endpoint, running only while there are any: setting one for each would cost
more than most calls.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

TICK_SECONDS = 0.05


class Watched(Protocol):
    """A request that may take long."""

    def took_long(self) -> None:
        """Hear, once, that it does."""


class Watch:
    """Tells every request that is still there after a tick or two."""

    def __init__(self) -> None:
        self._new: set[Watched] = set()
        self._waited: set[Watched] = set()
        self._is_ticking = False

    def enter(self, request: Watched) -> None:
        """Begin a request."""
        self._new.add(request)
        if not self._is_ticking:
            self._is_ticking = True
            asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def leave(self, request: Watched) -> None:
        """End a request."""
        self._new.discard(request)
        self._waited.discard(request)

    def _tick(self) -> None:
        late, self._waited, self._new = self._waited, self._new, set()
        for request in late:
            request.took_long()
        self._is_ticking = bool(self._waited)
        if self._is_ticking:
            asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)
