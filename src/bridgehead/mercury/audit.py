"""Audit: one line in the log for each call. Who, which tool and model, tokens, cost, time, outcome.

Lines are written a little after the call, several at once, so that no answer waits for the log. They hold no
prompt and no completion, unless the settings say so.
"""

from __future__ import annotations

import asyncio
from typing import Any

from bridgehead.runtime import logs

DELAY_SECONDS = 0.1
MOST_WAITING = 1_000


class Audit:
    """Takes the lines in, and writes them soon."""

    def __init__(self) -> None:
        self._log = logs.logger("mercury.audit")
        self._waiting: list[dict[str, Any]] = []
        self._timer: asyncio.TimerHandle | None = None

    def note(self, entry: dict[str, Any]) -> None:
        """Take one call's line in."""
        self._waiting.append(entry)
        if len(self._waiting) >= MOST_WAITING:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            self._log.info("call", **entry)
