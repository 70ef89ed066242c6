"""Audit: one line in the log for each call. Who, which tool and model, tokens, cost, time, outcome.

Lines are written a little after the call, several at once, so that no answer waits for the log. They hold no
prompt and no completion, unless the settings say so.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime import logs

from ..completion import Completed
from .call import Call

_log = logs.logger("mercury.audit")

DELAY_SECONDS = 0.1
AT_ONCE = 8
"""Lines that are written in one go; calls are served in between."""


class Entry(Struct, frozen=True):
    """What became of one call."""

    call: Call
    outcome: str
    seconds: float
    completed: Completed | None
    further: dict[str, object]
    """What every line about this call has; the line itself is written when others are under way."""


def brief(tool: str, client: str, outcome: str, seconds: float = 0.0) -> None:
    """Write the line of a call that asks nothing of a model, or was refused before it could."""
    _log.info("call", client=client, tool=tool, outcome=outcome, ms=_ms(seconds))


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


class Audit:
    """Takes what became of calls, and writes it down soon."""

    def __init__(self, *, with_content: bool) -> None:
        self._with_content = with_content
        self._waiting: deque[Entry] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def note(self, call: Call, outcome: str, seconds: float, completed: Completed | None) -> None:
        """Take one call's line in."""
        self._waiting.append(Entry(call, outcome, seconds, completed, logs.further()))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY_SECONDS, self._write_some)

    def close(self) -> None:
        """Write everything that waits."""
        if self._timer is not None:
            self._timer.cancel()
        self._write(len(self._waiting))

    def _write_some(self) -> None:
        self._write(min(AT_ONCE, len(self._waiting)))
        self._timer = None
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(0, self._write_some)

    def _write(self, count: int) -> None:
        if not count:
            return
        entries = [self._waiting.popleft() for _ in range(count)]
        _log.info_each("call", map(self._line, entries))

    def _line(self, entry: Entry) -> dict[str, Any]:
        call, completed = entry.call, entry.completed
        line: dict[str, Any] = {
            **entry.further,
            "client": call.client,
            "tool": call.tool,
            "model": call.model,
            "outcome": entry.outcome,
            "ms": _ms(entry.seconds),
            "tries": call.tries,
        }
        if completed is not None:
            used = completed.metadata.usage
            line["prompt_tokens"] = used.prompt_tokens
            line["completion_tokens"] = used.completion_tokens
            line["cost_usd"] = completed.metadata.cost_usd
            line["from_cache"] = completed.metadata.from_cache
        if self._with_content:
            line["request"] = call.body.decode()
            line["content"] = None if completed is None else completed.content
        return line
