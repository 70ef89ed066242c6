"""Audit: one log line per call, with client, tool, model, tokens, cost, time and outcome.

The bridge's call hook reports the end of each tool call; calls to the model add their own data. A tool that
calls the model several times gets a line for each. Lines are written a little later, several at once, so that
no answer waits for the log. They contain no prompt and no completion unless LOG_CONTENT is set.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from itertools import islice
from typing import Any

from msgspec import Struct

from bridgehead.mcp import Bridge, Context, InvalidArguments, Invocation, Outcome, observe_calls
from bridgehead.runtime import callers, logs
from bridgehead.runtime.errors import BridgeError

from ..completion import Completion
from .call import Call, identify_client

_log = logs.logger("mercury.audit")

DELAY_SECONDS = 0.1
LINES_AT_ONCE = 8
"""Lines written at once; calls are served in between."""
_TO_MS = 1000


class AuditEntry(Struct):
    """The line of one call, while it is being collected."""

    tool: str
    client: str
    call: Call | None = None
    """None if the tool did not call the model."""
    outcome: str = ""
    seconds: float = 0.0
    ended_at: float = 0.0
    completion: Completion | None = None
    fields: dict[str, object] = {}
    """The log's context fields, taken now: the line is written when other calls are under way."""

    def end(self, outcome: str, seconds: float, completion: Completion | None = None) -> None:
        """Record the outcome of the call."""
        self.outcome, self.seconds, self.completion = outcome, seconds, completion
        if completion is not None and not completion.metadata.from_cache:
            callers.charge(completion.metadata.cost_usd or 0.0)
        self.ended_at = time.time()  # now, because the line is written later


def audit_calls(bridge: Bridge[Any]) -> None:
    """Audit the calls of a bridge with the `audit` of its running service."""

    def ended(invocation: Invocation, outcome: Outcome, seconds: float) -> None:
        service = invocation.context.state
        if invocation.kind == "tool" and service is not None:  # None if opening failed
            service.audit.end(invocation, outcome, seconds)

    bridge.around_calls(observe_calls(ended))


class Audit:
    """Collects the outcomes of calls, and writes their lines shortly after."""

    def __init__(self, *, with_content: bool) -> None:
        self._with_content = with_content
        self._open: dict[Context[Any], list[AuditEntry]] = {}
        """Calls to the model, by the tool call under way that made them."""
        self._waiting: deque[AuditEntry] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, context: Context[Any], tool: str, call: Call | None = None) -> AuditEntry:
        """Begin the entry of a call to the model, within a tool call."""
        client = identify_client(context) if call is None else call.client
        entry = AuditEntry(tool, client, call, fields=logs.context_fields())
        self._open.setdefault(context, []).append(entry)
        return entry

    def end(self, invocation: Invocation, outcome: Outcome, seconds: float) -> None:
        """Queue the lines of a tool call that has ended."""
        context = invocation.context
        # A call that never reached the model (invalid arguments, a list of models) gets a line of its own.
        entries = self._open.pop(context, None)
        if entries is None:
            entry = AuditEntry(invocation.name, identify_client(context), fields=logs.context_fields())
            entry.end(_read_outcome(outcome), seconds)
            entries = [entry]
        self._waiting += entries
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY_SECONDS, self._write, LINES_AT_ONCE)

    def close(self) -> None:
        """Write all queued lines."""
        if self._timer is not None:
            self._timer.cancel()
        self._write(len(self._waiting))

    def _write(self, limit: int) -> None:
        """Write up to this many queued lines; schedule the rest."""
        entries = list(islice(self._waiting, limit))
        for _ in entries:
            self._waiting.popleft()
        if entries:
            _log.info_each("call", map(self._line, entries))
        self._timer = None
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(0, self._write, limit)

    def _line(self, entry: AuditEntry) -> dict[str, Any]:
        call, completion = entry.call, entry.completion
        line: dict[str, Any] = {
            "time": entry.ended_at or None,
            **entry.fields,
            "client": entry.client,
            "tool": entry.tool,
        }
        if call is not None:
            line["model"] = call.model
        line["outcome"] = entry.outcome
        line["ms"] = round(entry.seconds * _TO_MS, 3)
        if call is not None:
            line["tries"] = call.tries
            if call.uncertain_usd:
                line["uncertain_usd"] = round(call.uncertain_usd, 12)
        if completion is not None:
            if used := completion.metadata.usage:
                line["prompt_tokens"] = used.prompt_tokens
                line["completion_tokens"] = used.completion_tokens
            line["cost_usd"] = completion.metadata.cost_usd
            line["from_cache"] = completion.metadata.from_cache
        if self._with_content and call is not None:
            line["prompt"] = call.body.decode()
            line["content"] = None if completion is None else completion.content
        return line


def _read_outcome(outcome: Outcome) -> str:
    error = outcome.error
    if isinstance(error, BridgeError):
        return error.code.upper()
    if isinstance(error, InvalidArguments):
        return "INVALID_ARGUMENTS"
    if outcome.status == "error":
        return "INTERNAL_ERROR"
    return outcome.status if outcome.status in ("ok", "asked") else "CANCELLED"
