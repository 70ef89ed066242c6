"""Redaction: takes secrets out of everything that the API sends, where it is read and before it is used.

An upstream may repeat the key that it was sent: in a refusal, a warning, an answer, a model's name. Results,
notifications, log lines and audit lines are all made from what is read here, so none of them can show it.
"""

from __future__ import annotations

from typing import Any

from msgspec import json

from bridgehead.runtime import logs

_ESCAPED = (b"\\u00", b"\\/")
"""What a secret can be disguised with in JSON: it has no other characters that are escaped."""


def redact_json(body: bytes) -> bytes:
    """Return JSON without secrets; where there are none, which is nearly always, the same bytes."""
    if not logs.may_show_secret(body) and not any(mark in body for mark in _ESCAPED):
        return body
    return json.encode(_redact(json.decode(body)))


def _redact(value: Any) -> Any:
    if isinstance(value, str):
        return logs.scrubbed(value)
    if isinstance(value, list):
        return [_redact(item) for item in value]
    if isinstance(value, dict):
        return {logs.scrubbed(name): _redact(item) for name, item in value.items()}
    return value


def count_held(text: str) -> int:
    """Return how many characters at the end of a text may be the beginning of a secret.

    They are held back until it is known, so that a secret that comes in two pieces is found too.
    """
    held = 0
    for secret in logs.secrets():
        tail = text[1 - len(secret) :]
        start = tail.find(secret[0])
        while start >= 0 and not secret.startswith(tail[start:]):
            start = tail.find(secret[0], start + 1)
        if start >= 0:
            held = max(held, len(tail) - start)
    return held
