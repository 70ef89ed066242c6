"""Streams: puts the chunks of a streamed answer together. Pure; the time is an argument.

Normally each chunk adds to the text. While diffusing, each one replaces the whole text so far.
"""

from __future__ import annotations

import msgspec

from .. import failures
from ..errors import ApiFailed
from . import wire
from .sse import Events, EventTooLong

_DONE = b"[DONE]"


class Gathered:
    """A streamed answer as far as it has come."""

    def __init__(self, *, diffusing: bool, most_bytes: int) -> None:
        self.diffusing = diffusing
        self.model = ""
        self.finish_reason: str | None = None
        self.usage: wire.ApiUsage | None = None
        self.warnings: list[str] = []
        self.is_done = False
        self.first_token_at: float | None = None
        self.chunks = 0
        self._pieces: list[str] = []
        self._sent = 0
        self._calls: dict[int, wire.ToolCall] = {}
        self._events = Events(most_bytes)
        self._most_bytes = most_bytes
        self._size = 0

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    @property
    def tool_calls(self) -> list[wire.ToolCall]:
        """The tool calls so far."""
        return [self._calls[index] for index in sorted(self._calls)]

    def feed(self, piece: bytes, now: float) -> bool:
        """Take bytes in; tells whether there is news of the text."""
        try:
            events = self._events.feed(piece)
        except EventTooLong:
            raise self.broken("one event of it is too long") from None
        before = self.chunks
        for data in events:
            self._take(data, now)
        return self.chunks != before

    def end(self, now: float) -> None:
        """Take in that no more bytes come."""
        for data in self._events.end():
            self._take(data, now)

    def unsent(self) -> str:
        """Give what came since this was last asked; while diffusing, the whole text as it is."""
        if self.diffusing:
            return self.text
        pieces = self._pieces[self._sent :]
        self._sent = len(self._pieces)
        return "".join(pieces)

    def broken(self, why: str) -> ApiFailed:
        """Give the error for a stream that cannot be trusted to be whole, with what has come."""
        return ApiFailed(
            f"The stream broke: {why}.",
            "STREAM_INCOMPLETE",
            next_step=failures.CONTENT_SO_FAR,
            is_charge_possible=True,
            content=self.text,
        )

    def _take(self, data: bytes, now: float) -> None:
        if data == _DONE:
            self.is_done = True
            return
        try:
            chunk = wire.read_chunk(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self.broken("a chunk of it cannot be read") from None
        self._note(chunk)
        if chunk.choices:
            choice = chunk.choices[0]
            self.finish_reason = choice.finish_reason or self.finish_reason
            if choice.delta is not None:
                self._add(choice.delta, now)

    def _note(self, chunk: wire.Chunk) -> None:
        if chunk.error is not None:
            raise failures.in_stream(chunk.error, self.text)
        self.model = chunk.model or self.model
        self.usage = chunk.usage or self.usage
        if chunk.warning:
            self.warnings += wire.warnings_of(chunk.warning)

    def _add(self, delta: wire.Delta, now: float) -> None:
        if delta.tool_calls:
            for call in delta.tool_calls:
                self._add_call(call)
        text = delta.content
        if not text:
            return
        self.chunks += 1
        if self.first_token_at is None:
            self.first_token_at = now
        if self.diffusing:
            self._pieces, self._size = [text], len(text)
        else:
            self._pieces.append(text)
            self._size += len(text)
        if self._size > self._most_bytes:
            raise self.broken(f"it has more than the {self._most_bytes:,} bytes that this server takes")

    def _add_call(self, delta: wire.ToolCallDelta) -> None:
        call = self._calls.setdefault(delta.index or 0, wire.ToolCall(function=wire.FunctionCall()))
        call.id = delta.id or call.id
        function = call.function
        if delta.function is not None and function is not None:
            function.name += delta.function.name or ""
            function.arguments += delta.function.arguments or ""
