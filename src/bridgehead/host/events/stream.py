"""Stream: `/events`, the events of this process as server-sent events for operators.

A slow reader loses the oldest events and gets an `event: dropped` with their number; the server ends the
stream of one that reads nothing, like any stream. The number of readers is limited.
"""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs

from bridgehead.mcp import OVERLOADED
from bridgehead.mcp.http.message import Request, Response, ResponseStream
from bridgehead.runtime.events import Feed, Listener
from bridgehead.runtime.metrics import Metrics

from ..auth.rejection import HostRejection

MAX_READERS = 16
KEEP_ALIVE_SECONDS = 15.0
_AT_ONCE = 100
_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold events back until its buffer is full
)


class EventStreams:
    """The readers of one process."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._readers: set[Listener] = set()
        self._sending: set[asyncio.Future[None]] = set()

    def declare_metrics(self, metrics: Metrics) -> None:
        """Declare the gauge of readers."""
        metrics.gauge(
            "bridgehead_event_readers",
            "Operators who read the stream of events.",
            lambda: {(): float(len(self._readers))},
        )

    async def serve(self, request: Request) -> Response | ResponseStream:
        """Send events to an operator until it disconnects."""
        if request.method == "HEAD":  # HEAD has no body, so it must not take a reader's place
            return Response(200, b"", _HEADERS)
        if len(self._readers) >= MAX_READERS:
            message = f"{MAX_READERS} operators read the events already. End one, then try again."
            raise HostRejection(429, message, "too_many", code=OVERLOADED)
        # Which types a reader wants: `?types=call.failed,budget.*`; all without it.
        types = parse_qs(request.query.decode("latin-1")).get("types", [])
        listener = Listener(tuple(word for text in types for word in text.split(",") if word))
        self._readers.add(listener)
        try:
            return await self._send_until_gone(request, listener)
        finally:
            self._readers.discard(listener)

    async def _send_until_gone(self, request: Request, listener: Listener) -> ResponseStream:
        self._feed.join(listener)
        stream = await request.open_stream(200, _HEADERS)
        sending = asyncio.ensure_future(_send(listener, stream))
        self._sending.add(sending)

        def cancel() -> None:
            sending.cancel()

        request.when_gone(cancel)
        try:
            # `wait` and not `await sending`: the sender ends by being cancelled, which is no failure here.
            await asyncio.wait([sending])
        finally:
            sending.cancel()
            self._sending.discard(sending)
            self._feed.leave(listener)
        return stream

    def end(self) -> None:
        """End every stream, because the server stops."""
        for sending in tuple(self._sending):
            sending.cancel()


async def _send(listener: Listener, stream: ResponseStream) -> None:
    """Send events as they come, and a comment every `KEEP_ALIVE_SECONDS` without any."""
    reported = 0
    await stream.write(b": the events from now on\n\n")
    while True:
        try:
            async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                events = await listener.take(_AT_ONCE)
        except TimeoutError:
            await stream.write(b": nothing new\n\n")
            continue
        lost, reported = listener.dropped - reported, listener.dropped
        if lost:
            await stream.write(b'event: dropped\ndata: {"events":%d}\n\n' % lost)
        fields = ((event.id.encode(), event.type.encode(), event.encode()) for event in events)
        await stream.write(
            b"".join(b"id: %b\nevent: %b\ndata: %b\n\n" % event_fields for event_fields in fields)
        )
