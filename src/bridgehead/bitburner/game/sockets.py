"""Sockets: the options of every WebSocket of this bridge, and the queue of outgoing requests."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from websockets.asyncio.connection import Connection
from websockets.protocol import State

if TYPE_CHECKING:
    from ..settings import BitburnerSettings

RELAY_PATH = "/bridgehead/relay"
MARK = "Bridgehead"
"""The response header that identifies a bridge."""
TIMEOUT = "Bridgehead-Timeout-Ms"
PING_INTERVAL_SECONDS = 15.0
"""How often an idle game is pinged: often enough that no router on the way forgets the connection."""
PING_TIMEOUT_SECONDS = 10.0
"""How long a game may take to answer a ping. Its page can be busy for seconds, when it saves for example."""
_CLOSE_SECONDS = 1.0
_HARD_LIMIT_FACTOR = 4
"""The library closes the connection for a frame above its limit, so that is set above ours: a frame between
the two fails only the call that it answers, and the game stays connected."""
_OPEN_SECONDS = 5.0


def make_options(settings: BitburnerSettings) -> dict[str, Any]:
    """Return the options that server and client share.

    No compression: both ends are on one machine, and deflating a large reply takes many times longer than
    sending it.
    """
    # Silent: the bridge logs events itself, and the library would log the content of frames.
    logger = logging.getLogger("bridgehead.bitburner.game.sockets")
    logger.setLevel(logging.CRITICAL + 1)
    return {
        "compression": None,
        "max_size": _HARD_LIMIT_FACTOR * settings.max_frame_bytes,
        "ping_interval": PING_INTERVAL_SECONDS,
        "ping_timeout": PING_TIMEOUT_SECONDS,
        "open_timeout": _OPEN_SECONDS,
        "close_timeout": _CLOSE_SECONDS,
        "logger": logger,
    }


_MAX_UNSENT = 256 * 1024
"""Bytes that may wait in the transport; beyond that the game reads slowly, and frames wait in the outbox."""
_ENOUGH = 4096
"""From this size on, requests are sent at once, so that the game can start on them."""
_RETRY_SECONDS = 0.005


class Outbox:
    """Requests queued for one connection, by id.

    Requests of one turn of the loop leave in one write; a cancelled one that is still queued is never sent.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, bytes] = {}
        self._size = 0
        self._is_due = False

    def post(self, request_id: int, frame: bytes) -> None:
        """Send a frame: at the end of this turn of the loop, or as soon as there is enough."""
        self._waiting[request_id] = frame
        self._size += len(frame)
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._flush)
        elif self._size >= _ENOUGH:
            self._send()

    def withdraw(self, request_id: int) -> None:
        """Remove a frame that has not been sent yet."""
        self._waiting.pop(request_id, None)

    def _flush(self) -> None:
        self._is_due = False
        self._send()
        if self._waiting:
            self._is_due = True
            self._loop.call_later(_RETRY_SECONDS, self._flush)

    def _send(self) -> None:
        """Send as much as the connection can take."""
        connection = self._connection
        self._size = 0
        # Nothing can be sent any more; `Link.run` fails the calls.
        if connection.state is not State.OPEN:
            self._waiting.clear()
        while self._waiting and connection.transport.get_write_buffer_size() <= _MAX_UNSENT:
            # Join frames into one write of limited size, at least one frame. `protocol.send_text` builds the
            # frame without writing it, which the library's own `send` would do frame by frame.
            size = 0
            while self._waiting and size <= _MAX_UNSENT:
                request_id = next(iter(self._waiting))
                frame = self._waiting.pop(request_id)
                connection.protocol.send_text(frame)
                size += len(frame)
            connection.transport.write(b"".join(connection.protocol.data_to_send()))
