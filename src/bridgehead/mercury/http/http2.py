"""HTTP/2: one connection that many requests share, on the state machine of h2.

A request that is left before it is over is cancelled by name, while the others go on. No more are begun than
the other side takes at once. When it says that it goes, what it has begun is brought to its end here too.
"""

from __future__ import annotations

import asyncio
from functools import singledispatchmethod
from typing import cast

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from .answer import MOST_KEPT
from .farewells import Farewell, Farewells
from .stream import Stream
from .transport import ACCEPT, ConnectionBroken, NotProcessed, Outgoing

SILENT_SECONDS = 1.0
"""Nothing came for so long after a request that was given up: it may be the connection."""
ECHO_SECONDS = 2.0
"""How long a connection in doubt has to show that it is alive."""
_DEFAULT_WINDOW = 65_535
_LARGEST_WINDOW = 2**31 - 1
_LAST_STREAM_ID = 2**31 - 1


class Http2Connection(asyncio.Protocol):
    """A connection, and the streams on it."""

    def __init__(self, authority: str, most: int) -> None:
        self._authority = authority
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._farewells = Farewells()
        self._streams: dict[int, Stream] = {}
        self._lost: ConnectionBroken | None = None
        self._is_going = False
        self._is_in_doubt = False
        self._heard_at = self._loop.time()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        """Done when the other side has said what it takes."""
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self._h2.local_settings = Settings(
            client=True,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: MOST_KEPT,
                SettingCodes.MAX_HEADER_LIST_SIZE: 65_536,
            },
        )
        self._window = min(most * MOST_KEPT, _LARGEST_WINDOW)
        """For all streams together; as much as they may keep, so that none waits for another's reader."""

    # --- asking --------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is under way."""
        return not self._streams

    @property
    def is_ending(self) -> bool:
        """Tell whether nothing can be begun on it any more."""
        return self._lost is not None or self._is_going

    @property
    def has_room(self) -> bool:
        """Tell whether the other side takes one more request now, as far as is known."""
        ids_left = _LAST_STREAM_ID - self._h2.highest_outbound_stream_id
        most = self._h2.remote_settings.max_concurrent_streams
        return not self._is_in_doubt and ids_left > 1 and self._h2.open_outbound_streams < most

    @property
    def silent_since(self) -> float:
        """When something was heard last."""
        return self._heard_at

    def send(self, stream: Stream, request: Outgoing) -> None:
        """Begin a stream with a request."""
        if self._lost is not None:
            raise self._lost
        number = self._h2.get_next_available_stream_id()
        try:
            self._h2.send_headers(number, self._head(request), end_stream=not request.body)
        except ProtocolError as problem:
            raise ConnectionBroken(f"the request cannot be sent ({type(problem).__name__})") from problem
        stream.id = number
        stream.sent_at = self._loop.time()
        stream.unsent = memoryview(request.body)
        self._streams[number] = stream
        self._send_body(stream)
        self._flush()

    def _head(self, request: Outgoing) -> list[tuple[str, str]]:
        length = [("content-length", str(len(request.body)))] if request.body else []
        return [
            (":method", request.method),
            (":scheme", "https"),
            (":authority", self._authority),
            (":path", request.target),
            ("accept", ACCEPT),
            *[(name.lower(), value) for name, value in request.headers.items()],
            *length,
        ]

    def _send_body(self, stream: Stream) -> None:
        """Send as much of a body as the other side takes now."""
        while stream.unsent:
            room = min(self._h2.local_flow_control_window(stream.id), self._h2.max_outbound_frame_size)
            if room <= 0:
                return
            piece, stream.unsent = stream.unsent[:room], stream.unsent[room:]
            self._h2.send_data(stream.id, bytes(piece), end_stream=not stream.unsent)

    def acknowledge(self, stream: Stream, size: int) -> None:
        """Let the other side send more, since so much of a stream was read."""
        if self._lost is None and size:
            self._h2.acknowledge_received_data(size, stream.id)
            self._flush()

    def leave(self, stream: Stream, unread: int) -> None:
        """Forget a stream; one that is not over is cancelled at the other side."""
        is_under_way = self._streams.pop(stream.id, None) is not None
        if self._lost is not None:
            return
        if is_under_way and not stream.is_over:
            self._h2.reset_stream(stream.id, ErrorCodes.CANCEL)
            self._doubt(stream)
        if unread:
            self._h2.acknowledge_received_data(unread, stream.id)
        self._flush()
        self._end_if_due()

    def close(self, why: str = "it was closed") -> None:
        """End it at once."""
        self._lose(why)
        if self._transport is not None:
            self._transport.abort()

    # --- a connection that may be dead ---------------------------------------------------------------------

    def _doubt(self, stream: Stream) -> None:
        """Begin nothing more before the other side speaks, where it said nothing at all since a request."""
        now = self._loop.time()
        if self._is_in_doubt or self._heard_at > stream.sent_at or now - stream.sent_at < SILENT_SECONDS:
            return
        self._is_in_doubt = True
        self._h2.ping(b"are you?")
        self._loop.call_later(ECHO_SECONDS, self._judge)

    def _judge(self) -> None:
        if self._is_in_doubt:
            self.close("the other side says nothing any more")

    # --- what the event loop calls -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, and say what we take."""
        self._transport = cast("asyncio.Transport", transport)  # of whichever event loop, it is a stream's
        self._h2.initiate_connection()
        if self._window > _DEFAULT_WINDOW:
            self._h2.increment_flow_control_window(self._window - _DEFAULT_WINDOW)
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Take bytes in."""
        if self._lost is not None:
            return
        self._heard_at = self._loop.time()
        self._is_in_doubt = False
        data, farewells = self._farewells.feed(data)
        try:
            for event in self._h2.receive_data(data):
                self._take(event)
        except ProtocolError as problem:
            self._flush()
            self.close(f"what came is not HTTP/2 ({type(problem).__name__})")
            return
        for farewell in farewells:
            self._bid_farewell(farewell)
        self._flush()
        self._end_if_due()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that there is no connection any more."""
        self._lose("the other side closed it" if exc is None else str(exc) or type(exc).__name__)

    def _lose(self, why: str) -> None:
        if self._lost is not None:
            return
        self._lost = ConnectionBroken(why)
        if not self.ready.done():
            self.ready.set_exception(self._lost)
            self.ready.exception()  # who waits for it may be gone
        for stream in self._streams.values():
            stream.take_loss(ConnectionBroken(why))
        self._streams.clear()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and self._transport is not None and self._lost is None:
            self._transport.write(data)

    # --- what the other side says --------------------------------------------------------------------------

    @singledispatchmethod
    def _take(self, event: events.Event) -> None:
        """Take something in; what is not named below needs nothing done."""

    @_take.register
    def _(self, event: events.RemoteSettingsChanged) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
        self._send_bodies()

    @_take.register
    def _(self, _event: events.WindowUpdated) -> None:
        self._send_bodies()

    @_take.register
    def _(self, event: events.ResponseReceived) -> None:
        if event.stream_id in self._streams:
            self._streams[event.stream_id].take_head(event.headers)

    @_take.register
    def _(self, event: events.DataReceived) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            stream.take_data(event.data, event.flow_controlled_length)

    @_take.register
    def _(self, event: events.StreamEnded) -> None:
        if event.stream_id in self._streams:
            self._streams[event.stream_id].take_end()

    @_take.register
    def _(self, event: events.StreamReset) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            self._lose_stream(stream, event.error_code)

    def _send_bodies(self) -> None:
        for stream in self._streams.values():
            self._send_body(stream)

    def _lose_stream(self, stream: Stream, code: ErrorCodes | int | None) -> None:
        """Give a stream up that the other side has ended; one that is answered in whole has lost nothing."""
        del self._streams[stream.id]
        if code == ErrorCodes.REFUSED_STREAM:
            stream.take_loss(NotProcessed("it refused the request before doing anything with it"))
        else:
            stream.take_loss(ConnectionBroken(f"the other side ended the request ({_name(code)})"))

    def _bid_farewell(self, farewell: Farewell) -> None:
        """Begin nothing any more, and give up what the other side will not begin."""
        self._is_going = True
        for stream in [one for one in self._streams.values() if one.id > farewell.last_stream]:
            del self._streams[stream.id]
            stream.take_loss(
                NotProcessed(f"it is going, and did not begin the request ({_name(farewell.code)})")
            )

    def _end_if_due(self) -> None:
        if self._is_going and not self._streams:
            self.close("the other side has gone")


def _name(code: ErrorCodes | int | None) -> str:
    try:
        return ErrorCodes(code or 0).name
    except ValueError:
        return f"code {code}"
