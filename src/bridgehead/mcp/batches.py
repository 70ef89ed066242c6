"""Batches: the messages of one array, handled in order and answered with an array (revision 2025-03-26).

A batch is handled in slices of one loop turn, a few calls at a time, and ends when its answers reach
`batch_bytes`: otherwise a small array of calls could block the loop and fill the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

from msgspec import UNSET

from . import jsonrpc
from .connection import Connection, Outlet, Reply
from .errors import OVERLOADED, ProtocolError

CALLS_AT_ONCE = 16
"""Calls of one batch awaited at once; their answers may exceed `batch_bytes`."""
_TURN_SECONDS = 0.002
"""How long to handle messages before yielding to the loop."""


class BatchRun:
    """One batch being handled. It counts as in flight, so it is cancelled when its client disconnects."""

    def __init__(self, batch: jsonrpc.Batch, connection: Connection, outlet: Outlet) -> None:
        self.request_id: jsonrpc.RequestId = f"\0batch {id(self):x}"  # no client sends a control character
        self.outlet = outlet
        self._batch = batch
        self._connection = connection
        self._limit = connection.limits.batch_bytes
        self._answers: list[bytes | None] = [None] * len(batch.items)
        self._size = 0
        self._is_cancelled = False

    def cancel(self) -> None:
        """Do not start the remaining messages."""
        self._is_cancelled = True

    async def run(self, handle: Callable[[jsonrpc.Message | jsonrpc.Malformed], Reply]) -> bytes | None:
        """Handle every message; return the array of answers, or None if there is nothing to answer."""
        loop, in_flight = asyncio.get_running_loop(), self._connection.in_flight
        running: set[asyncio.Task[None]] = set()
        in_flight[self.request_id] = self
        turn_ends = perf_counter() + _TURN_SECONDS
        try:
            for position, item in enumerate(self._batch.items):
                if self._is_cancelled:
                    break
                reply = handle(item) if self._size <= self._limit else self._refuse(item)
                if isinstance(reply, bytes):
                    self._keep(position, reply)
                elif reply is not None:
                    running.add(loop.create_task(self._await(position, reply)))
                    if len(running) >= CALLS_AT_ONCE:
                        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                        for task in done:
                            task.result()
                if perf_counter() > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = perf_counter() + _TURN_SECONDS
            await asyncio.gather(*running)
        finally:
            del in_flight[self.request_id]
            for task in running:
                task.cancel()
        answers = [answer for answer in self._answers if answer is not None]
        return b"".join((b"[", b",".join(answers), b"]")) if answers else None

    async def _await(self, position: int, reply: Coroutine[Any, Any, bytes | None]) -> None:
        answer = await reply
        if answer is not None:
            self._keep(position, answer)

    def _keep(self, position: int, answer: bytes) -> None:
        self._answers[position] = answer
        self._size += len(answer)

    def _refuse(self, item: jsonrpc.Message | jsonrpc.Malformed) -> bytes | None:
        """Answer a message after the limit of `batch_bytes` with an error."""
        if isinstance(item, jsonrpc.Malformed):
            return jsonrpc.error(item.id, item.error)
        if item.id is UNSET or item.method is UNSET:
            return None
        message = (
            f"This was not done: the answers of the batch have more than {self._limit} bytes already. "
            "Send it again in a smaller batch."
        )
        return jsonrpc.error(item.id, ProtocolError(OVERLOADED, message))
