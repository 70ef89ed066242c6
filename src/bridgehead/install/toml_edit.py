"""TOML edit: puts one table into a TOML text, and takes it out again, touching nothing else.

A text is checked by the standard library before and after; what is done here is to find the lines of a table.
Our table goes to the end of the text behind an empty line, and ends as the text ended, with or without a line
break: so taking it out gives back the same bytes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from .errors import Malformed, malformed
from .json_edit import newline, same

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
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
    """Return what a text says; a section of its root has to be a table, if it is there."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        raise _malformed(str(failure), text) from None
    if not isinstance(data.get(section, {}), dict):
        raise malformed(f"{section} was expected to be a table", text, 0)
    return data


def put(text: str | None, section: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return a text with an entry in a table of its root; no text is a file that is not there."""
    old = read(text or "", section).get(section, {}).get(name)
    style = newline(text or "")
    block = _table(section, name, entry, style)
    if text is None:
        return block
    if old is None:
        is_closed = not text or text.endswith("\n")
        return text + style + block if is_closed else text + style * 2 + block.removesuffix(style)
    return text if same(old, entry) else _replaced(text, section, name, block)


def take(text: str, section: str, name: str) -> str | None:
    """Return a text without an entry; None is a file that was not there before the entry came."""
    if name not in read(text, section).get(section, {}):
        return text
    style = newline(text)
    for span in reversed(_spans(text, section, name)):
        is_all = span == _Span(0, len(text))
        text = _cut(text, span, style)
        if is_all:
            return None
    return text


def _malformed(said: str, text: str) -> Malformed:
    place = _PLACE.search(said)
    message = _PLACE.sub("", said)
    if place and place.group(1):
        return Malformed(message, int(place.group(1)), int(place.group(2)))
    return malformed(message, text, len(text))


def _replaced(text: str, section: str, name: str, block: str) -> str:
    style = newline(text)
    first, *others = _spans(text, section, name)
    for span in reversed(others):
        text = _cut(text, span, style)
    is_closed = text[first.start : first.end].endswith("\n")
    return text[: first.start] + (block if is_closed else block.removesuffix(style)) + text[first.end :]


def _cut(text: str, span: _Span, style: str) -> str:
    """Take lines out, and the empty line before them."""
    before, after = text[: span.start], text[span.end :]
    if not text[: span.end].endswith("\n"):
        before = before.removesuffix(style).removesuffix(style)
    elif before in ("", style) or before.endswith("\n" + style):
        before = before.removesuffix(style)
        after = after if span.start else after.removeprefix(style)
    return before + after


def _spans(text: str, section: str, name: str) -> list[_Span]:
    """Return the lines of a table and of those in it; neighbours count as one."""
    headers = _headers(text)
    ends = [start for start, _ in headers[1:]] + [len(text)]
    spans: list[_Span] = []
    for (start, path), end in zip(headers, ends, strict=False):
        if path[:2] != (section, name):
            continue
        span = _Span(start, _last_line(text, start, end))
        if spans and not text[spans[-1].end : start].strip():
            span = _Span(spans.pop().start, span.end)
        spans.append(span)
    if not spans:
        raise malformed(f"{section}.{name} is not a table with a header of its own", text, 0)
    return spans


def _last_line(text: str, start: int, end: int) -> int:
    """Return where a table ends: empty lines and comments behind it belong to what follows."""
    lines = text[start:end].splitlines(keepends=True)
    while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
        end -= len(lines.pop())
    return end


def _headers(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """Return where each table begins, and its path."""
    found, depth, line = [], 0, 0
    for token in _TOKEN.finditer(text):
        sign, before = token.group(), text[line : token.start()]
        if sign == "[" and depth == 0 and not before.strip():
            found.append((line, _path(text[line:].split("\n", 1)[0].rstrip("\r"))))
        if sign == "\n":
            line = token.end()
        depth += (sign in ("[", "{")) - (sign in ("]", "}"))
    return found


def _path(header: str) -> tuple[str, ...]:
    path = []
    table: Any = tomllib.loads(header)
    while isinstance(table, dict) and table:
        key, table = next(iter(table.items()))
        path.append(key)
    return tuple(path)


def _table(section: str, name: str, entry: Mapping[str, Any], style: str) -> str:
    lines = [f"{_key(key)} = {_toml(item)}" for key, item in entry.items()]
    return "".join(line + style for line in (f"[{_key(section)}.{_key(name)}]", *lines))


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _toml(text)


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + "".join(_character(c) for c in value) + '"'
        case list() | tuple():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items()) + " }"
        case _:
            return str(value)


def _character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character >= " " and character != "\x7f" else f"\\u{ord(character):04x}"
