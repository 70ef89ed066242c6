"""Delivery: how an answer gets to the client: at once, paced, or as a fault wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain, cycle, islice, repeat

from .exchange import JSON, Answered, Exchange
from .faults import Fault
from .refusals import Refusal
from .rendering import DONE, Streamed, Whole

PIECES_AT_ONCE = 32
"""How many pieces of a stream go out together when nothing is to be waited for."""
BYTES_AT_ONCE = 64 * 1024
"""And how many bytes, roughly."""
ENDLESS_DELAY = 0.001
_BROKEN_EVENT = b'data: {"id": "chatcmpl-\n\n\xff\xfe\n\n'
_NOT_JSON = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
_PLAIN = Fault()


async def deliver(
    exchange: Exchange, reply: Whole | Streamed, fault: Fault | None, chunk_delay: float
) -> Answered:
    """Send an answer, spoilt by a fault where there is one."""
    fault = fault or _PLAIN
    if fault.delay:
        await asyncio.sleep(fault.delay)
    if fault.kind == "drop":
        return exchange.cut()
    if isinstance(reply, Whole):
        return await _deliver_whole(exchange, reply, fault)
    return await _deliver_stream(exchange, reply, fault, chunk_delay)


# --- in one piece ------------------------------------------------------------------------------------------


async def _deliver_whole(exchange: Exchange, reply: Whole, fault: Fault) -> Answered:
    half = reply.body[: len(reply.body) // 2]
    match fault.kind:
        case "cut" | "silent":
            await exchange.begin((JSON, (b"content-length", b"%d" % len(reply.body))))
            await exchange.send_part(half)
            if fault.kind == "silent":
                await _for_ever()
            return exchange.cut()
        case "endless":
            await exchange.begin((JSON,))
            await _send(exchange, chain([half], repeat(b" and on")), _delay(fault, 0.0))
            return exchange.end()
        case "short":
            return exchange.respond(200, half)
        case "garbage":
            return exchange.respond(200, _NOT_JSON)
        case "error":
            return exchange.respond(200, Refusal(500).body)
        case _:
            return exchange.respond(reply.status, reply.body)


# --- as a stream -------------------------------------------------------------------------------------------


async def _deliver_stream(exchange: Exchange, reply: Streamed, fault: Fault, chunk_delay: float) -> Answered:
    await exchange.begin()
    await _send(exchange, _events(reply, fault), _delay(fault, chunk_delay))
    if fault.kind == "silent":
        await _for_ever()
    return exchange.cut() if fault.kind == "cut" else exchange.end()


def _events(reply: Streamed, fault: Fault) -> Iterator[bytes]:
    """Put the events of a stream together, up to where the fault strikes."""
    begun = chain([reply.opening], reply.deltas)
    finish = [reply.finish, reply.usage] if reply.usage else [reply.finish]
    match fault.kind:
        case "cut" | "short" | "silent":
            return islice(begun, fault.after + 1)
        case "garbage":
            return chain(islice(begun, fault.after + 1), [_BROKEN_EVENT])
        case "error":
            return chain(islice(begun, fault.after + 1), [b"data: " + Refusal(500).body + b"\n\n"])
        case "endless":
            return chain([reply.opening], cycle(reply.deltas))
        case "undone":
            return chain(begun, finish)
        case _:
            return chain(begun, finish, [DONE])


def _delay(fault: Fault, usual: float) -> float:
    """Say how long to wait between pieces; what never ends is only as fast as can be when that is wanted."""
    if fault.chunk_delay is not None:
        return fault.chunk_delay
    return usual or (ENDLESS_DELAY if fault.kind == "endless" else 0.0)


async def _send(exchange: Exchange, pieces: Iterator[bytes], delay: float) -> None:
    """Send pieces as fast as the client reads, or one each `delay`, catching up where a timer came late."""
    if not delay:
        while batch := _batch(pieces):
            await exchange.send(batch)
        return
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        late = 1 + int((loop.time() - due) / delay)
        batch = list(islice(pieces, late))
        if not batch:
            return
        await exchange.send(batch)
        due += delay * late
        await asyncio.sleep(due - loop.time())


def _batch(pieces: Iterator[bytes]) -> list[bytes]:
    """Take what goes out together: many small pieces, or few large ones."""
    batch: list[bytes] = []
    size = 0
    for piece in islice(pieces, PIECES_AT_ONCE):
        batch.append(piece)
        size += len(piece)
        if size > BYTES_AT_ONCE:
            break
    return batch


async def _for_ever() -> None:
    """Wait until the client goes, which cancels this."""
    await asyncio.Event().wait()
