"""Redaction: remove secrets from everything that the API sends, as soon as it is read.

An upstream may echo the key that it was sent: in a refusal, a warning, an answer, a model's name. Results,
notifications, log lines and audit lines are made from redacted data only, so none of them can show a key.
"""

from __future__ import annotations

from typing import Any

from msgspec import json

from bridgehead.runtime import logs

_ESCAPE, _UNICODE, _SLASH = b"\\", b"\\u00", b"\\/"
"""JSON escapes that can hide a secret; no other escape encodes a character of one."""


def may_need_redaction(data: bytes) -> bool:
    """Check quickly whether JSON may contain a secret; false positives only cost time."""
    # Searching for one byte is ten times as fast as for two, and most answers have no escapes at all.
    return (_ESCAPE in data and (_UNICODE in data or _SLASH in data)) or logs.may_show_secret(data)


def redact_json(body: bytes) -> bytes:
    """Return JSON without secrets; the same bytes if there are none."""
    return json.encode(_redact(json.decode(body))) if may_need_redaction(body) else body


def redact_text(text: str) -> str:
    """Return a text without secrets."""
    return logs.scrubbed(text) if logs.may_show_secret(text.encode(errors="replace")) else text


def _redact(value: Any) -> Any:
    if isinstance(value, str):
        return logs.scrubbed(value)
    if isinstance(value, list):
        return [_redact(item) for item in value]
    if isinstance(value, dict):
        return {logs.scrubbed(name): _redact(item) for name, item in value.items()}
    return value


def count_held(text: str) -> int:
    """Return the number of characters at the end of a text that may be the beginning of a secret.

    The caller holds them back until more text decides, so that a secret split over two pieces is found.
    """
    held = 0
    for secret in logs.secrets():
        # Complete secrets are redacted already, so only a shorter beginning can be left. The earliest start
        # counts: it holds back the most.
        tail = text[1 - len(secret) :]
        start = tail.find(secret[0])
        while start >= 0 and not secret.startswith(tail[start:]):
            start = tail.find(secret[0], start + 1)
        if start >= 0:
            held = max(held, len(tail) - start)
    return held
