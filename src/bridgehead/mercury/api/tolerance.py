"""Tolerance: read responses that the types of `wire` refuse, because they are billed anyway. Pure.

A field of the wrong type is dropped and named; bytes that are not UTF-8 become U+FFFD. Half of a surrogate
pair (a server that cuts an emoji in two) is kept as a private-use character until `mend` joins the halves.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from bridgehead.runtime import logs

from .wire import change_strings, check_cost

BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
MAX_RESPONSE_BYTES = 16_000_000
"""The largest response. Many times what a model can generate: only a broken server sends more, and each call
in flight may hold this much."""
MAX_QUOTE = 20_000
"""Limit of an unusable response that an error carries, in bytes."""
MAX_IGNORED = 20
"""Limit of fields dropped from one response; each costs another conversion of the whole."""
LOST_CHARACTERS = "Some characters of the answer could not be read; U+FFFD stands for them."
_LOST = "\ufffd"
# Python strings may hold half a pair, but neither JSON nor the search for secrets can. So U+D800..U+DFFF are
# moved to the end of the last private-use plane, which no text uses.
_SHIFT = 0x10F800 - 0xD800
_HALVES = {half: half + _SHIFT for half in range(0xD800, 0xE000)}
_FIRST_HALF, _SECOND_HALF = "[\U0010f800-\U0010fbff]", "[\U0010fc00-\U0010ffff]"
_PAIR = re.compile(f"{_FIRST_HALF}{_SECOND_HALF}|[\U0010f800-\U0010ffff]")
_HAS_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escape of half a surrogate pair; both halves together are one as well."""
_OPEN_END = re.compile(f"{_FIRST_HALF}$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
T = TypeVar("T")


def read_tolerantly(data: bytes, kind: type[T]) -> tuple[T, list[str]]:
    """Return a response as a type, without secrets, and a warning for each part that could not be read.

    Raises one of `UNDECODABLE` if it is not JSON, or not the JSON of any response.
    """
    import json  # the standard one: msgspec refuses half a surrogate pair

    data = unzip(data)
    check_cost(data)
    text = data.removeprefix(BOM).decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except ValueError as problem:
        raise msgspec.DecodeError(str(problem)) from None
    if _HAS_HALF.search(data):
        value = change_strings(value, lambda string: string.translate(_HALVES))
    value = change_strings(value, logs.scrubbed)
    warnings = [LOST_CHARACTERS] if _LOST in text and _LOST.encode() not in data else []
    ignored: list[str] = []
    while True:
        try:
            converted = msgspec.convert(value, kind, strict=False)  # numbers may be strings
        except msgspec.ValidationError as problem:
            # Such as "Expected `int`, got `str` - at `$.usage.total_tokens`".
            path = str(problem).rpartition("`$")[2].rstrip("`")
            if len(ignored) == MAX_IGNORED or not _drop(value, path):
                raise
            ignored.append(path.removeprefix("."))
            continue
        if ignored:
            names = ", ".join(ignored)
            warnings.append(f"Fields of the answer that could not be read were ignored: {names}.")
        return converted, warnings


def unzip(data: bytes) -> bytes:
    """Return a body without gzip, which some gateways apply unasked."""
    if not data.startswith(_GZIP):
        return data
    import zlib

    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, MAX_RESPONSE_BYTES)
    except zlib.error:
        return data


def _drop(value: Any, path: str) -> bool:
    """Delete the value at a path of msgspec's (`.choices[0].text`); return whether it was there."""
    steps = [name or int(index) for name, index in _STEP.findall(path)]
    if not steps or "".join(match.group() for match in _STEP.finditer(path)) != path:
        return False
    *parents, last = steps
    try:
        for step in parents:
            value = value[step]
        del value[last]
    except (LookupError, TypeError):
        return False
    return True


def mend(text: str) -> str:
    """Return a text with the halves of surrogate pairs joined; one without its other half is lost."""
    # The regular expression is slow (40 ns a character), and most tool calls and reasoning are ASCII.
    return text if text.isascii() else _PAIR.sub(_join, text)


def _join(match: re.Match[str]) -> str:
    halves = [ord(half) - _SHIFT for half in match.group()]
    if len(halves) == 1:
        return _LOST
    return chr(0x10000 + ((halves[0] - 0xD800) << 10) + (halves[1] - 0xDC00))


def has_open_end(text: str) -> bool:
    """Return whether a text ends with the first half of a pair, whose second half may still come."""
    return _OPEN_END.search(text) is not None


def quote_bytes(body: bytes) -> str | None:
    """Return an unusable response as text without secrets, cut to `MAX_QUOTE`; None if it is empty."""
    text = body[:MAX_QUOTE].decode("utf-8", "replace")
    if "\\" in text:
        # Escapes can hide a secret from the search; see `wire.may_need_redaction`.
        text = re.sub(r"\\u00([0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), text)
        text = text.replace("\\/", "/")
    text = logs.scrubbed(text)
    return f"{text}…" if len(body) > MAX_QUOTE else text or None
