"""Stream: split a streamed response into server-sent events and assemble the answer. Pure.

Normally each chunk adds to the text; while diffusing, each replaces the whole text. Only `data` fields of an
event count; names, ids, comments and retry hints are skipped. The time is an argument.
"""

from __future__ import annotations

from collections.abc import Callable

from bridgehead.mcp import UNDECODABLE

from ..errors import MercuryError
from . import wire
from .refusals import broken_off

_DATA = b"data:"
_DONE = b"[DONE]"
_TOOL_CALL_BYTES = 8
"""Size of a tool call piece beside its text, so that a stream of empty pieces reaches the limit too."""


class EventTooLong(Exception):
    """An event is larger than the limit."""


class Events:
    """The server-sent events of one stream, in the order in which they become complete."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rest = b""
        self.seen = b""
        """The bytes from which the last events were taken."""

    def feed(self, piece: bytes) -> list[bytes]:
        """Add bytes and return the data of each event that they complete."""
        data = self._rest + piece if self._rest else piece
        if b"\r" in data:
            data = _unify_line_ends(data)
        self.seen = data
        *events, rest = data.split(b"\n\n")
        if len(rest) > self._max_bytes:
            raise EventTooLong
        self._rest = rest
        return [data for event in events if (data := _read_data(event))]

    def end(self) -> list[bytes]:
        """Return the last event if the stream ended without the empty line after it."""
        rest, self._rest = self._rest, b""
        data = _read_data(rest.rstrip(b"\r\n"))
        return [data] if data else []


def _unify_line_ends(data: bytes) -> bytes:
    """Convert all line ends to LF, but keep a final CR: its LF may still come."""
    if not data.endswith(b"\r"):
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return _unify_line_ends(data[:-1]) + b"\r" if len(data) > 1 else data


def _read_data(event: bytes) -> bytes:
    if event.startswith(b"data: ") and b"\n" not in event:  # nearly every event is one line
        return event[6:]
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(_DATA)]
    return b"\n".join(lines)


class StreamedAnswer:
    """The part of a streamed answer that has arrived."""

    def __init__(self, *, is_diffusing: bool, max_bytes: int) -> None:
        self.model = ""
        self.finish_reason: str | None = None
        self.usage: wire.ApiUsage | None = None
        self.warnings: list[str] = []
        self.is_done = False
        """Whether `[DONE]`, the last event, has arrived."""
        self.first_token_at: float | None = None
        self._is_diffusing = is_diffusing
        self._chunks = 0
        self._pieces: list[str] = []
        self._fresh: list[str] = []
        """Pieces not searched for secrets yet; all pieces of one network read are searched together."""
        self._held = ""
        """End of the text that may be the beginning of a secret; not shown until that is decided."""
        self._taken = 0
        """Number of pieces that `take_news` has returned."""
        self._tool_calls: dict[int, wire.ToolCall] = {}
        self._tool_names: dict[int, list[str]] = {}
        self._tool_arguments: dict[int, list[str]] = {}
        self._events = Events(max_bytes)
        self._max_bytes = max_bytes
        self._size = 0

    @property
    def text(self) -> str:
        """The text so far."""
        if self._fresh:
            self._add_fresh()
        return "".join(self._pieces)

    @property
    def tool_calls(self) -> list[wire.ToolCall]:
        """The tool calls so far."""
        calls = [self._tool_calls[index] for index in sorted(self._tool_calls)]
        for index, call in zip(sorted(self._tool_calls), calls, strict=True):
            call.function = wire.FunctionCall(
                "".join(self._tool_names[index]), "".join(self._tool_arguments[index])
            )
        return calls

    def feed(self, piece: bytes, now: float) -> bool:
        """Add bytes; return whether they changed the text."""
        try:
            events = self._events.feed(piece)
        except EventTooLong:
            raise self._broken("one event of it is too long") from None
        # Search all bytes of a read at once instead of each event: measured 1 µs less per event.
        read = wire.read_suspect_chunk if wire.may_need_redaction(self._events.seen) else wire.read_chunk
        before = self._chunks
        for data in events:
            self._read_event(data, now, read)
        if self._size > self._max_bytes:
            raise self._broken(f"it has more than the {self._max_bytes:,} bytes that this server takes")
        if self._fresh:
            self._add_fresh()
        return self._chunks != before

    def end(self, now: float) -> None:
        """Finish the answer; raises if it is not complete."""
        for data in self._events.end():
            self._read_event(data, now, wire.read_suspect_chunk)
        self._add_fresh()
        self._pieces.append(self._held)
        self._held = ""
        # A stream that just stops looks like a short answer, and common clients treat it so. Here it is an
        # error: a complete one has a finish reason and `[DONE]`.
        if self.finish_reason is None:
            raise self._broken("it ended without a finish reason")
        if not self.is_done:
            raise self._broken("it ended without its last event")

    def take_news(self) -> str:
        """Return the text since the last call; while diffusing, all of it."""
        if self._is_diffusing:
            return self.text
        pieces = self._pieces[self._taken :]
        self._taken = len(self._pieces)
        return "".join(pieces)

    def _broken(self, why: str) -> MercuryError:
        return MercuryError("STREAM_INCOMPLETE", f"The stream broke: {why}.", content=self.text)

    def _read_event(self, data: bytes, now: float, read: Callable[[bytes], wire.Chunk]) -> None:
        # Not JSON: the vendor's (and OpenAI's) last event.
        if data == _DONE:
            self.is_done = True
            return
        try:
            chunk = read(data)
        except UNDECODABLE:
            raise self._broken("a chunk of it cannot be read") from None
        self.model = chunk.model or self.model
        if chunk.usage or chunk.error or chunk.warning:
            if chunk.error is not None:
                raise broken_off(chunk.error, self.text)
            self.usage = chunk.usage or self.usage
            if chunk.warning:
                self.warnings += [chunk.warning] if isinstance(chunk.warning, str) else chunk.warning
        if not chunk.choices:
            return
        choice = chunk.choices[0]
        self.finish_reason = choice.finish_reason or self.finish_reason
        delta = choice.delta
        if delta is None:
            return
        if delta.tool_calls:
            for call in delta.tool_calls:
                self._add_tool_call(call)
        text = delta.content
        if not text:
            return
        self._chunks += 1
        if self.first_token_at is None:
            self.first_token_at = now
        # While diffusing, each chunk replaces the whole text. It cannot end in half a secret that the next
        # chunk completes, and `read` has redacted it.
        if self._is_diffusing:
            self._pieces, self._size = [text], len(text)
        else:
            self._fresh.append(text)
            self._size += len(text)

    def _add_fresh(self) -> None:
        """Redact the pieces of one read and add them, except an end that may be the beginning of a secret."""
        text = self._held + "".join(self._fresh)
        self._fresh = []
        text = wire.redact_text(text)
        held = wire.count_held(text)
        self._held = text[len(text) - held :]
        self._pieces.append(text[: len(text) - held] if held else text)

    def _add_tool_call(self, delta: wire.ToolCallDelta) -> None:
        # Collected, and joined once: appending to a string with each delta would take quadratic time.
        # Gemini's compatible endpoint sends no index.
        index = delta.index or 0
        if index not in self._tool_calls:
            self._tool_calls[index] = wire.ToolCall()
            self._tool_names[index], self._tool_arguments[index] = [], []
        self._tool_calls[index].id = delta.id or self._tool_calls[index].id
        self._size += _TOOL_CALL_BYTES
        if delta.function is not None:
            name, arguments = delta.function.name or "", delta.function.arguments or ""
            self._tool_names[index].append(name)
            self._tool_arguments[index].append(arguments)
            self._size += len(name) + len(arguments)
