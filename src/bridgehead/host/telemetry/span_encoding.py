"""Span encoding: OTLP's protobuf form of our spans, written by hand.

The SDK makes a message object for each attribute, which takes more CPU than all else that a span costs:
64 µs of 99, where this takes 11. Ours have no events and no links and share one resource and one scope, so
the bytes are joined, and attributes that come again are encoded once. Sending stays the SDK's exporter's.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

_MOST_KEPT = 10_000
_NEVER_AGAIN = frozenset({"jsonrpc.request.id", "bridgehead.request"})
"""Attributes that differ from span to span, so that keeping them would only crowd out the others."""
_SERVER = b"\x30\x02"
"""Field 6, the kind: a server's."""
_TIMES = struct.Struct("<BQBQ")
_START, _END = 7 << 3 | 1, 8 << 3 | 1
_FLAGS = struct.Struct("<BBI")
_FLAGS_KEY = (0x85, 0x01)
"""Field 16, as four bytes."""
_HAS_REMOTE, _IS_REMOTE = 0x100, 0x200
_DOUBLE = struct.Struct("<d")
_SHORT = 0x80


def _varint(value: int) -> bytes:
    if value < _SHORT:
        return bytes((value,))
    found = bytearray()
    while value >= _SHORT:
        found.append(value & 0x7F | _SHORT)
        value >>= 7
    found.append(value)
    return bytes(found)


def _field(number: int, data: bytes) -> bytes:
    """Write a field that has a length."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return _field(1, value.encode(errors="replace"))
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    if isinstance(value, float):
        return b"\x21" + _DOUBLE.pack(value)
    return _field(1, str(value).encode(errors="replace"))


def _encode_attribute(key: str, value: Any) -> bytes:
    return _field(9, _field(1, key.encode()) + _field(2, _value(value)))


class SpanEncoder:
    """Encodes batches of spans of one provider."""

    def __init__(self) -> None:
        self._attributes: dict[tuple[str, Any, type], bytes] = {}
        self._head: tuple[bytes, bytes] | None = None

    def encode(self, spans: Sequence[ReadableSpan]) -> bytes:
        """Write a batch as one export request."""
        if self._head is None:
            first = encode_spans(spans[:1]).resource_spans[0]
            resource = _field(1, first.resource.SerializeToString())
            self._head = resource, _field(1, first.scope_spans[0].scope.SerializeToString())
        resource, scope = self._head
        body = b"".join([scope, *(_field(2, self._span(span)) for span in spans)])
        return _field(1, resource + _field(2, body))

    def _span(self, span: ReadableSpan) -> bytes:
        context, parent = span.context, span.parent
        parts = [
            b"\x0a\x10",
            context.trace_id.to_bytes(16, "big"),
            b"\x12\x08",
            context.span_id.to_bytes(8, "big"),
            _field(5, span.name.encode(errors="replace")),
            _SERVER,
            _TIMES.pack(_START, span.start_time or 0, _END, span.end_time or 0),
        ]
        if context.trace_state:
            parts.append(_field(3, context.trace_state.to_header().encode()))
        flags = _HAS_REMOTE
        if parent is not None:
            parts += (b"\x22\x08", parent.span_id.to_bytes(8, "big"))
            flags |= _IS_REMOTE if parent.is_remote else 0
        parts += [self._attribute(key, value) for key, value in (span.attributes or {}).items()]
        status = span.status.status_code.value
        parts.append(b"\x7a\x02\x18" + _varint(status) if status else b"\x7a\x00")
        parts.append(_FLAGS.pack(*_FLAGS_KEY, flags))
        return b"".join(parts)

    def _attribute(self, key: str, value: Any) -> bytes:
        if key in _NEVER_AGAIN:
            return _encode_attribute(key, value)
        kind = (key, value, type(value))
        found = self._attributes.get(kind)
        if found is None:
            if len(self._attributes) >= _MOST_KEPT:
                self._attributes.clear()
            found = self._attributes[kind] = _encode_attribute(key, value)
        return found


class FastSpanExporter(SpanExporter):
    """Sends with the SDK's exporter what is encoded here, where that exporter lets itself be given bytes."""

    def __init__(self, exporter: Any) -> None:
        self._exporter = exporter
        self._send = getattr(getattr(exporter, "_client", None), "export", None)
        self._encoder = SpanEncoder()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch."""
        if self._send is None:
            found: SpanExportResult = self._exporter.export(spans)
            return found
        sent = self._send(self._encoder.encode(spans))
        return SpanExportResult.SUCCESS if sent.success else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Close the connection to the collector."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Nothing waits here."""
        return bool(self._exporter.force_flush(timeout_millis))
