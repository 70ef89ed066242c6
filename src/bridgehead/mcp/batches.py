"""Batches: several messages in one array, which only one revision knows, answered in one array too."""

from __future__ import annotations

import asyncio
from typing import Protocol

from msgspec import UNSET

from . import jsonrpc
from .connection import Connection, Outlet, Reply
from .errors import INVALID_REQUEST, ProtocolError
from .limits import Limits


class MessageTaker(Protocol):
    """What takes the messages of a batch one by one: the dispatcher."""

    limits: Limits

    def take_any(
        self, message: jsonrpc.Message | jsonrpc.Malformed, connection: Connection, outlet: Outlet
    ) -> Reply:
        """Take one message, and return its answer or the work towards it."""


def take_batch(server: MessageTaker, batch: jsonrpc.Batch, connection: Connection, outlet: Outlet) -> Reply:
    """Take a batch, where the client's revision has such a thing."""
    client = connection.client
    if client is None or not client.revision.batches:
        return _refuse(None, "batches exist only in protocol revision 2025-03-26")
    if len(batch.items) > server.limits.requests_in_flight:
        return _refuse(None, f"a batch may have {server.limits.requests_in_flight} messages")
    replies = [_take_item(server, item, connection, outlet) for item in batch.items]
    return None if all(reply is None for reply in replies) else _collect(replies)


def _take_item(
    server: MessageTaker,
    item: jsonrpc.Message | jsonrpc.Malformed,
    connection: Connection,
    outlet: Outlet,
) -> Reply:
    if isinstance(item, jsonrpc.Message) and item.method == "initialize" and item.id is not UNSET:
        return _refuse(item.id, "initialize cannot be part of a batch")
    return server.take_any(item, connection, outlet)


def _refuse(request_id: jsonrpc.RequestId | None, problem: str) -> bytes:
    return jsonrpc.error(request_id, ProtocolError(INVALID_REQUEST, f"Invalid request: {problem}"))


async def _collect(replies: list[Reply]) -> bytes | None:
    work = [reply for reply in replies if reply is not None and not isinstance(reply, bytes)]
    results = iter(await asyncio.gather(*work))
    answers = [reply if reply is None or isinstance(reply, bytes) else next(results) for reply in replies]
    given = [answer for answer in answers if answer is not None]
    return b"[%b]" % b",".join(given) if given else None
