"""Token watch: ends what is being answered to callers whose tokens were revoked or have expired meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bridgehead.runtime.timing import Clock

from .grants import Grant
from .tokens import Tokens

EVERY_SECONDS = 0.5


class TokenWatch:
    """Looks at the file of tokens now and then."""

    def __init__(self, tokens: Tokens | None, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    async def run(self, end_where: Callable[[Callable[[Grant], bool]], None]) -> None:
        """Look, as long as the host lives."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            if self._tokens is not None:
                self._tokens.refresh()
            end_where(self._is_over)

    def _is_over(self, grant: Grant) -> bool:
        if grant.expires is not None and grant.expires <= self._clock.now():
            return True
        return bool(grant.key) and self._tokens is not None and not self._tokens.holds(grant)
