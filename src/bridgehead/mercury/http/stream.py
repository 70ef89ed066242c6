"""Stream: one request and its answer on an HTTP/2 connection, which it shares with others.

What is kept unread is not acknowledged, so a slow reader makes its sender wait, and nobody else's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answer import Answer
from .transport import Outgoing

if TYPE_CHECKING:
    from .http2 import Http2Connection


class Stream(Answer):
    """A request on a shared connection, and its answer."""

    def __init__(self, connection: Http2Connection) -> None:
        super().__init__()
        self._connection = connection
        self.id = 0
        """Its number, which it gets when it is sent."""
        self.sent_at = 0.0
        self.unsent = memoryview(b"")
        """What the other side has not yet allowed to be sent of the body."""

    @property
    def is_over(self) -> bool:
        """Tell whether neither side has anything more to say."""
        return self._is_complete and not self.unsent

    def send(self, request: Outgoing) -> None:
        """Send the request."""
        self._connection.send(self, request)

    def close(self) -> None:
        """Have no more to do with it; what is not over is cancelled at the other side at once."""
        self._connection.leave(self, self._kept)
        self._pieces.clear()
        self._kept = 0

    def _was_read(self, kept: int) -> None:
        self._connection.acknowledge(self, kept)

    # --- what the connection calls -------------------------------------------------------------------------

    def take_head(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Take the head of the answer."""
        self._headers = dict(headers)
        self.status = int(self._headers.get(b":status", b"0"))
        self._has_head = True
        self._wake()

    def take_data(self, piece: bytes, size: int) -> None:
        """Take a piece of the body, which counts for so many bytes."""
        if piece:
            self._pieces.append(piece)
        self._kept += size
        self._wake()

    def take_end(self) -> None:
        """Take the end of the answer."""
        self._is_complete = True
        self._wake()

    def take_loss(self, why: Exception) -> None:
        """Take in that no more comes."""
        self._lose(why)
