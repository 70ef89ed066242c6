"""TOML edit: puts one table into a TOML text, or takes it out, and changes nothing else.

`tomllib` validates the text before and after; this module only finds the lines of a table. Our table goes to
the end of the text after an empty line, and ends with or without a line break as the text did, so taking it
out restores the same bytes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from bridgehead.runtime.lines import split_lines

from .errors import Malformed, malformed
from .json_edit import newline, same

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Strings and comments come first, so that brackets within them are not taken for a header or a value.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)


class _Span(Struct, frozen=True):
    """The lines of one table, with their line break."""

    start: int
    end: int


def read(text: str, section: str) -> dict[str, Any]:
    """Decode a text; the section, if present, must be a table."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        # Before Python 3.14 the position is only in the message.
        place = _PLACE.search(str(failure))
        message = _PLACE.sub("", str(failure))
        if place and place.group(1):
            raise Malformed(message, int(place.group(1)), int(place.group(2))) from None
        raise malformed(message, text, len(text)) from None
    if not isinstance(data.get(section, {}), dict):
        raise malformed(f"{section} was expected to be a table", text, 0)
    return data


def put(text: str | None, section: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with an entry in a section of its root; None stands for a missing file."""
    old = read(text or "", section).get(section, {}).get(name)
    style = newline(text or "")
    lines = [f"{_key(key)} = {_toml(item)}" for key, item in entry.items()]
    block = "".join(line + style for line in (f"[{_key(section)}.{_key(name)}]", *lines))
    if text is None:
        return block
    if old is None:
        is_closed = not text or text.endswith("\n")
        return text + style + block if is_closed else text + style * 2 + block.removesuffix(style)
    if same(old, entry):
        return text
    # The new table replaces the first span; the other spans are subtables of the old one and are removed.
    first, *others = _spans(text, section, name)
    for span in reversed(others):
        text = _cut(text, span, style)
    is_closed = text[first.start : first.end].endswith("\n")
    return text[: first.start] + (block if is_closed else block.removesuffix(style)) + text[first.end :]


def take(text: str, section: str, name: str) -> str | None:
    """Return the text without an entry; None if the table was the whole text."""
    if name not in read(text, section).get(section, {}):
        return text
    style = newline(text)
    for span in reversed(_spans(text, section, name)):
        is_all = span == _Span(0, len(text))
        text = _cut(text, span, style)
        if is_all:
            return None
    return text


def _cut(text: str, span: _Span, style: str) -> str:
    """Remove lines, and the empty line that `put` wrote before them."""
    before, after = text[: span.start], text[span.end :]
    if not text[: span.end].endswith("\n"):
        before = before.removesuffix(style).removesuffix(style)
    elif before in ("", style) or before.endswith("\n" + style):
        before = before.removesuffix(style)
        after = after if span.start else after.removeprefix(style)
    return before + after


def _spans(text: str, section: str, name: str) -> list[_Span]:
    """Return the lines of a table and its subtables; adjacent ones are one span."""
    headers, depth, line = [], 0, 0
    for token in _TOKEN.finditer(text):
        sign, before = token.group(), text[line : token.start()]
        # A bracket opens a header only at the start of a line and outside of a value.
        if sign == "[" and depth == 0 and not before.strip():
            path = []
            table: Any = tomllib.loads(text[line:].split("\n", 1)[0].rstrip("\r"))
            while isinstance(table, dict) and table:
                key, table = next(iter(table.items()))
                path.append(key)
            headers.append((line, path))
        if sign == "\n":
            line = token.end()
        depth += (sign in ("[", "{")) - (sign in ("]", "}"))
    spans: list[_Span] = []
    for index, (start, path) in enumerate(headers):
        if path[:2] != [section, name]:
            continue
        end = headers[index + 1][0] if index + 1 < len(headers) else len(text)
        # Empty lines and comments at the end belong to the table that follows.
        lines = split_lines(text[start:end], keepends=True)
        while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
            end -= len(lines.pop())
        is_adjacent = spans and not text[spans[-1].end : start].strip()
        spans.append(_Span(spans.pop().start if is_adjacent else start, end))
    if not spans:
        raise malformed(f"{section}.{name} is not a table with a header of its own", text, 0)
    return spans


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _toml(text)


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + "".join(map(_escape, value)) + '"'
        case list() | tuple():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items()) + " }"
        case _:
            return str(value)


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character >= " " and character != "\x7f" else f"\\u{ord(character):04x}"
