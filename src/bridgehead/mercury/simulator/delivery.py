"""Delivery: sends an answer at once, paced, or spoilt by a fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import chain, cycle, islice, repeat

from .exchange import JSON, Answered, Exchange
from .faults import Fault
from .refusals import Refusal, injected
from .rendering import DONE, Streamed, Whole

PIECES_AT_ONCE = 32
"""Pieces of an unpaced stream that are sent together."""
BYTES_AT_ONCE = 64 * 1024
"""Bytes that end such a batch early."""
ENDLESS_DELAY = 0.001
_BROKEN_EVENT = b'data: {"id": "chatcmpl-\n\n\xff\xfe\n\n'
_NOT_JSON = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
_PLAIN = Fault()


async def deliver(
    exchange: Exchange,
    reply: Whole | Streamed,
    fault: Fault | None,
    chunk_delay: float,
    now: Callable[[], float],
) -> Answered:
    """Send an answer, spoilt or replaced by the fault if there is one."""
    fault = fault or _PLAIN
    if fault.delay:
        await asyncio.sleep(fault.delay)
    if fault.status != 200:  # noqa: PLR2004 - the status of every other fault
        refusal = injected(fault.status, fault.code, fault.message)
        return exchange.respond(fault.status, refusal.body, (JSON, *fault.headers(now())))
    if fault.kind == "drop":
        return exchange.cut()
    if isinstance(reply, Whole):
        return await _deliver_whole(exchange, reply, fault)
    await exchange.begin()
    await _send(exchange, _events(reply, fault), _delay(fault, chunk_delay))
    if fault.kind == "silent":
        await _wait_forever()
    return exchange.cut() if fault.kind == "cut" else exchange.end()


async def _deliver_whole(exchange: Exchange, reply: Whole, fault: Fault) -> Answered:
    half = reply.body[: len(reply.body) // 2]
    match fault.kind:
        case "cut" | "silent":
            await exchange.begin((JSON, (b"content-length", b"%d" % len(reply.body))))
            await exchange.send_part(half)
            if fault.kind == "silent":
                await _wait_forever()
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


def _events(reply: Streamed, fault: Fault) -> Iterator[bytes]:
    """Return the events of a stream, up to where the fault strikes."""
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
    """Return the seconds between pieces; an endless answer is paced unless the fault sets a delay."""
    if fault.chunk_delay is not None:
        return fault.chunk_delay
    return usual or (ENDLESS_DELAY if fault.kind == "endless" else 0.0)


async def _send(exchange: Exchange, pieces: Iterator[bytes], delay: float) -> None:
    """Send pieces as fast as the client reads, or one each `delay`; catch up if a timer fires late."""
    if not delay:
        while True:
            batch: list[bytes] = []
            size = 0
            for piece in islice(pieces, PIECES_AT_ONCE):
                batch.append(piece)
                size += len(piece)
                if size > BYTES_AT_ONCE:
                    break
            if not batch:
                return
            await exchange.send(batch)
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


async def _wait_forever() -> None:
    """Wait until the client disconnects, which cancels this."""
    await asyncio.Event().wait()
