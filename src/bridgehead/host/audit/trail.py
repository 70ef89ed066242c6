"""Trail: who called what, when, and how it ended. Collects the lines of a process and stores them soon after.

Calls never wait for the audit and go on when it cannot be written: lines then wait in memory, up to
`MAX_LINES`. Beyond that the oldest are written to the log instead and counted. A line has no arguments, only
their keyed hash: equal arguments have equal hashes, and without the key nobody can try out guesses.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import msgspec
from msgspec import Struct

from bridgehead.mcp import Invocation, Outcome
from bridgehead.runtime import callers, directories, key_files, logs
from bridgehead.runtime.errors import BridgeError, StorageError
from bridgehead.runtime.metrics import Metrics

from ..request import current_request
from ..settings import HostSettings

if TYPE_CHECKING:
    from ..request import HostRequest

WRITE_SECONDS = 0.2
"""How long lines are collected for one write."""
MAX_LINES = 10_000
RETRY_SECONDS = 1.0
PRUNE_SECONDS = 3600.0
_MAX_BATCH = 1000
_HASH_DIGITS = 16
_MAX_NAME = 200
FAILED = ("error", "cancelled", "refused")
"""What the outcome `failed` stands for in a search."""
OUTCOMES = ("ok", "asked", *FAILED)

log = logs.logger("host.audit")


class Line(Struct, frozen=True):
    """One tool call, or one that was refused."""

    at: float
    """Its end, in seconds since 1970."""
    client: str
    """The caller's name; `(anyone)` where nobody needs a token."""
    tool: str
    """Its own name, without a prefix; what a client sent, if there is no such tool; empty if not known."""
    outcome: str
    """One of `OUTCOMES`; `asked`: the client was asked a question first."""
    bridge: str = ""
    reason: str = ""
    """Why it failed or was refused: a code, or a word of the table of refusals."""
    arguments: str = ""
    """The keyed hash of the arguments."""
    ms: float = 0.0
    bytes: int | None = None
    """Size of the encoded answer; None if there is none or it is not known, as for a task."""
    cost_usd: float | None = None
    request: str = ""
    replica: str = ""
    key: str = ""
    """Makes it safe to store a line again when an acknowledgement was lost."""


class Query(Struct, frozen=True):
    """Which lines to find, newest first."""

    client: str = ""
    tool: str = ""
    """A name, in which `*` stands for any letters."""
    outcome: str = ""
    since: float | None = None
    until: float | None = None
    limit: int = 50
    offset: int = 0

    def conditions(self) -> list[tuple[str, str, Any]]:
        """Return the column, the operator and the value of each condition."""
        found: list[tuple[str, str, Any]] = []
        if self.client:
            found.append(("client", "=", self.client))
        if self.tool:
            escaped = self.tool.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
            found.append(("tool", "like", escaped.replace("*", "%")))
        if self.outcome:
            found.append(("outcome", "in", FAILED if self.outcome == "failed" else (self.outcome,)))
        if self.since is not None:
            found.append(("at", ">=", self.since))
        if self.until is not None:
            found.append(("at", "<", self.until))
        return found


class AuditStore(Protocol):
    """Where lines are kept."""

    async def write(self, lines: Sequence[Line]) -> None:
        """Store lines; one that is stored already is skipped. Raises BridgeError."""
        ...

    async def search(self, query: Query) -> list[Line]:
        """Return the matching lines, newest first. Raises BridgeError."""
        ...

    async def prune(self, before: float, keep: int) -> None:
        """Delete what is older than a time, and the oldest beyond a number of lines. Raises BridgeError."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class Trail:
    """The audit of one process."""

    def __init__(
        self,
        store: AuditStore,
        key: bytes,
        replica: str,
        now: Callable[[], float],
        *,
        days: float,
        lines: int,
    ) -> None:
        self.store = store
        self._key = key
        self._replica = replica
        self._now = now
        self._days = days
        self._keep = lines
        self._new: deque[tuple[Line, Invocation | None]] = deque()
        """With its call, whose answer may not be encoded yet."""
        self._waiting: deque[Line] = deque()
        self._due = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self._problem = ""
        self.metrics = Metrics()
        self._dropped = self.metrics.counter(
            "bridgehead_audit_dropped_total", "Audit lines that are in the log and not in the audit."
        )

    # --- lines ---------------------------------------------------------------------------------------------

    def note_call(self, bridge: str, call: Invocation, outcome: Outcome, seconds: float) -> None:
        """Note a call that has ended."""
        request, error = current_request.get(), outcome.error
        reason = ""
        if outcome.status == "error":
            reason = "tool_error" if error is None else str(getattr(error, "code", type(error).__name__))
        line = Line(
            self._now(),
            call.context.principal or "(anyone)",
            call.name,
            outcome.status,
            bridge,
            reason,
            self._hash(bytes(call.context.arguments)),
            round(seconds * 1000, 3),
            cost_usd=callers.charged(),
            request="" if request is None else request.id,
            replica=self._replica,
            key=str(uuid4()),
        )
        self._add(line, call)

    def note_refusal(self, request: HostRequest, tool: str, reason: str) -> None:
        """Note a call that was refused before a bridge saw it, if its caller is known."""
        if request.grant is None:
            return
        client = request.grant.name or "(anyone)"
        name = tool[:_MAX_NAME] if tool.isprintable() else ""
        line = Line(self._now(), client, name, "refused", reason=reason, request=request.id)
        self._add(msgspec.structs.replace(line, replica=self._replica, key=str(uuid4())), None)

    def _hash(self, arguments: bytes) -> str:
        # In one order: equal arguments have equal hashes, however a client writes them.
        with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
            arguments = msgspec.json.encode(msgspec.json.decode(arguments), order="sorted")
        return hmac.digest(self._key, arguments, "sha256").hex()[:_HASH_DIGITS]

    def _add(self, line: Line, call: Invocation | None) -> None:
        while len(self._new) + len(self._waiting) >= MAX_LINES:
            lost = self._waiting.popleft() if self._waiting else self._new.popleft()[0]
            self._dropped.add()
            log.warn("an audit line is only here", **msgspec.to_builtins(lost))
        self._new.append((line, call))
        self._due.set()

    # --- writing -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Write lines from now on."""
        self._writing = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Write what is waiting, and close the store."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await self._write()
        self.store.close()

    async def _run(self) -> None:
        pruned = 0.0
        while True:
            if time.monotonic() - pruned > PRUNE_SECONDS:
                pruned = time.monotonic()
                await self._prune()
            try:
                async with asyncio.timeout(PRUNE_SECONDS):
                    await self._due.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(WRITE_SECONDS)
            self._due.clear()
            if not await self._write():
                await asyncio.sleep(RETRY_SECONDS)
                self._due.set()

    async def _prune(self) -> None:
        try:
            await self.store.prune(self._now() - self._days * 86_400, self._keep)
        except BridgeError as failure:
            log.warn("old audit lines cannot be deleted", problem=str(failure))

    async def _write(self) -> bool:
        """Store all lines; return False if the store fails."""
        while self._new:
            line, call = self._new.popleft()
            size = None if call is None else call.answer_bytes
            self._waiting.append(line if size is None else msgspec.structs.replace(line, bytes=size))
        while self._waiting:
            batch = [self._waiting[index] for index in range(min(len(self._waiting), _MAX_BATCH))]
            try:
                await self.store.write(batch)
            except BridgeError as failure:
                if str(failure) != self._problem:  # once for each outage
                    self._problem = str(failure)
                    log.warn("audit lines wait", lines=len(self._waiting), problem=self._problem)
                return False
            self._problem = ""
            for line in batch:
                # A full queue may have dropped its oldest lines during the write.
                if self._waiting and self._waiting[0] is line:
                    self._waiting.popleft()
        return True


def read_key(settings: HostSettings) -> bytes:
    """Return the key of the hashes: from BRIDGEHEAD_STATE_KEYS, or from a file of this machine."""
    if settings.state_keys:
        return settings.derive_keys("audit")[0]
    path = directories.open_state(settings, "host") / "audit.key"
    try:
        return key_files.read_or_create(path)
    except (OSError, TimeoutError) as failure:
        raise StorageError(
            f"The key of the audit cannot be read or created in {path}: {failure}.", path=str(path)
        ) from failure
