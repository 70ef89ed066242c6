"""JSONC: parses JSON with comments and trailing commas, and keeps the position of every member.

`json_edit` changes texts by these positions. Apart from comments and trailing commas the parser is strict:
a text that no client would accept is refused, with line and column.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

from .errors import malformed

MAX_DEPTH = 200
"""Levels of nesting; below Python's recursion limit, and no client's file comes near it."""

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE_COMMENT = re.compile(r"//[^\r\n]*")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}


class Comment(Struct, frozen=True):
    """A comment, without the line break that ends it."""

    start: int
    end: int
    is_line: bool


class Member(Struct, frozen=True):
    """A member of an object, from the first quote of its key."""

    key: str
    start: int
    value: Value
    comma: int | None
    """Position of the comma after it, if there is one."""


class Value(Struct, frozen=True):
    """A value and its position; `members` is None unless it is an object."""

    start: int
    end: int
    data: Any
    members: tuple[Member, ...] | None = None


class Document(Struct, frozen=True):
    """A parsed text. The root is None if there is only whitespace and comments."""

    text: str
    root: Value | None
    comments: tuple[Comment, ...]


def parse(text: str) -> Document:
    """Parse a text; raises Malformed."""
    reader = _Reader(text)
    reader.skip()
    root = reader.value(0) if reader.at < len(text) else None
    reader.skip()
    if reader.at < len(text):
        raise malformed("there is more after the end of the document", text, reader.at)
    return Document(text, root, tuple(reader.comments))


class _Reader:
    """Recursive descent over a text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.comments: list[Comment] = []

    def skip(self) -> None:
        """Skip whitespace and comments."""
        while True:
            self.at = self.at + len(_SPACE.match(self.text, self.at)[0])  # type: ignore[index] # it matches the empty text too
            if not self.text.startswith(("//", "/*"), self.at):
                return
            is_line = self.text.startswith("//", self.at)
            match = (_LINE_COMMENT if is_line else _BLOCK_COMMENT).match(self.text, self.at)
            if match is None:
                raise malformed("this comment has no end", self.text, self.at)
            self.comments.append(Comment(self.at, match.end(), is_line))
            self.at = match.end()

    def value(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise malformed(f"nested more than {MAX_DEPTH} levels deep", self.text, self.at)
        match self.text[self.at : self.at + 1]:
            case "{":
                return self.object(depth)
            case "[":
                return self.array(depth)
            case '"':
                start = self.at
                return Value(start=start, data=self.string(), end=self.at)
            case _:
                return self.scalar()

    def scalar(self) -> Value:
        start = self.at
        for word, meaning in _WORDS.items():
            if self.text.startswith(word, start):
                self.at += len(word)
                return Value(start, self.at, meaning)
        match = _NUMBER.match(self.text, start)
        if match is None:
            raise malformed("a value is missing here", self.text, start)
        self.at = match.end()
        try:
            return Value(start, self.at, json.loads(match.group()))
        except ValueError:  # more digits than Python converts
            raise malformed("this number is too long", self.text, start) from None

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise malformed("this string is not closed on its line, or has a bad escape", self.text, self.at)
        self.at = match.end()
        text: str = json.loads(match.group())
        return text

    def array(self, depth: int) -> Value:
        start, items = self.at, []
        self.at += 1
        self.skip()
        while not self.text.startswith("]", self.at):
            items.append(self.value(depth + 1).data)
            self.separator("]")
        self.at += 1
        return Value(start, self.at, items)

    def object(self, depth: int) -> Value:
        start = self.at
        members: list[Member] = []
        self.at += 1
        self.skip()
        while not self.text.startswith("}", self.at):
            members.append(self.member(depth))
        self.at += 1
        # Of members with the same key the last one counts in `data`; `members` has all of them.
        return Value(start, self.at, {member.key: member.value.data for member in members}, tuple(members))

    def member(self, depth: int) -> Member:
        start = self.at
        if not self.text.startswith('"', start):
            raise malformed('a name in double quotes, or "}", is missing here', self.text, start)
        key = self.string()
        self.skip()
        if not self.text.startswith(":", self.at):
            raise malformed('a ":" is missing here', self.text, self.at)
        self.at += 1
        self.skip()
        value = self.value(depth + 1)
        return Member(key, start, value, self.separator("}"))

    def separator(self, closing: str) -> int | None:
        """Skip a comma and return its position; without one, the closing bracket must follow."""
        self.skip()
        comma = None
        if self.text.startswith(",", self.at):
            comma = self.at
            self.at += 1
            self.skip()
        elif not self.text.startswith(closing, self.at):
            raise malformed(f'a "," or "{closing}" is missing here', self.text, self.at)
        return comma
