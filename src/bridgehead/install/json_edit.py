"""JSON edit: puts one member into an object of a JSON text, and takes it out again, touching nothing else.

Taking out is the inverse of putting in, to the byte, and needs nothing but the text. Where an object was
empty before, the space that stood in it says so: it is kept behind our member, after a blank that no one else
writes there (`_tail`). Where it was not there at all, there is no such blank, and it goes with our member.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .errors import malformed
from .jsonc import Comment, Document, Member, Value, parse

_UNIT = "  "
_BREAK = re.compile(r"\r\n|\r|\n")


def read(text: str, section: str) -> dict[str, Any]:
    """Return what a text says; its root has to be an object, and so has a section of it, if it is there."""
    document = parse(text)
    if document.root is None:
        return {}
    holder = _find(_members(document, document.root), section)
    if holder is not None:
        _members(document, holder.value)
    data: dict[str, Any] = document.root.data
    return data


def put(text: str | None, section: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return a text with an entry in a section of its root; no text is a file that is not there."""
    page = _Page(parse(text or ""))
    root = page.document.root
    if root is None:
        made = page.render({section: {name: entry}}, "")
        before = f"{text}{page.newline}" if text else ""
        return before + made + page.newline * (1 if text is None else 2)
    holder = _find(_members(page.document, root), section)
    if holder is None:
        return page.append(root, section, {name: entry})
    old = _find(_members(page.document, holder.value), name)
    if old is None:
        return page.append(holder.value, name, entry)
    if same(old.value.data, entry):
        return page.text
    written = page.render(entry, page.indent(old.start))
    return page.text[: old.value.start] + written + page.text[old.value.end :]


def take(text: str, section: str, name: str) -> str | None:
    """Return a text without an entry; None is a file that was not there before the entry came."""
    page = _Page(parse(text))
    root = page.document.root
    holder = _find(_members(page.document, root), section) if root else None
    member = _find(_members(page.document, holder.value), name) if holder else None
    if root is None or holder is None or member is None:
        return text
    shorter = page.cut(holder.value, member)
    if shorter is not None:
        return shorter
    shorter = page.cut(root, holder)
    return shorter if shorter is not None else page.without_root(root)


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON; Python takes true for 1."""
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)  # TOML has dates


def _find(members: tuple[Member, ...], key: str) -> Member | None:
    """Of several members of one name the last one counts, as for every reader of JSON."""
    return next((member for member in reversed(members) if member.key == key), None)


def _members(document: Document, value: Value) -> tuple[Member, ...]:
    if value.members is None:
        raise malformed('an object, "{ … }", was expected here', document.text, value.start)
    return value.members


def _has_break(text: str) -> bool:
    return "\n" in text or "\r" in text


class _Page:
    """A document with its style: line ending and indentation."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.text = document.text
        self.newline = newline(self.text)
        self.unit = self._unit()

    def _unit(self) -> str:
        root = self.document.root
        if root is None or not root.members or not self._is_first(root.members[0].start):
            return _UNIT
        indent, outer = self.indent(root.members[0].start), self.indent(root.start)
        return indent.removeprefix(outer) or _UNIT

    def _line(self, position: int) -> int:
        return max(self.text.rfind("\n", 0, position), self.text.rfind("\r", 0, position)) + 1

    def _is_first(self, position: int) -> bool:
        return not self.text[self._line(position) : position].strip(" \t")

    def indent(self, position: int) -> str:
        """Return the space that the line of a position begins with."""
        line = self.text[self._line(position) :]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def comments(self, start: int, end: int) -> list[Comment]:
        return [
            comment for comment in self.document.comments if start <= comment.start and comment.end <= end
        ]

    def render(self, value: Any, indent: str, *, is_inline: bool = False) -> str:
        """Write a value: one member a line, lists on one line."""
        if is_inline or not isinstance(value, Mapping) or not value:
            return _json(value)
        inner = indent + self.unit
        lines = [f"{inner}{_json(key)}: {self.render(item, inner)}" for key, item in value.items()]
        return self.newline.join(["{", f",{self.newline}".join(lines), indent + "}"])

    def append(self, owner: Value, key: str, value: Any) -> str:
        """Return the text with a new last member of an object."""
        if not owner.members:
            return self._fill(owner, key, value)
        last = owner.members[-1]
        place = last.value.end if last.comma is None else last.comma + 1
        end, needs_break = self._end_of_line(place, owner.end - 1)
        is_inline = not needs_break and not _has_break(self.text[owner.start : owner.members[0].start])
        indent = self.indent(last.start if self._is_first(last.start) else owner.start)
        if not self._is_first(last.start):
            indent += self.unit
        gap = " " if is_inline else self.newline + indent
        written = f"{gap}{_json(key)}: {self.render(value, indent, is_inline=is_inline)}"
        if last.comma is None:
            return self.text[:place] + "," + self.text[place:end] + written + self.text[end:]
        return self.text[:end] + written + "," + self.text[end:]

    def _end_of_line(self, start: int, stop: int) -> tuple[int, bool]:
        """Return the end of the comments that stand behind a member, and whether a line has to end there."""
        end = start
        for comment in self.comments(start, stop):
            if _has_break(self.text[end : comment.start]):
                break
            end = comment.end
            if comment.is_line:
                return end, True
        return end, False

    def _fill(self, owner: Value, key: str, value: Any) -> str:
        """Return the text with the first member of an object that was empty."""
        start, stop = owner.start + 1, owner.end - 1
        comments = self.comments(start, stop)
        place = comments[-1].end if comments else start
        outer = self.indent(owner.start)
        indent = outer + self.unit
        written = f"{self.newline}{indent}{_json(key)}: {self.render(value, indent)}"
        return self.text[:place] + written + self._tail(self.text[place:stop], outer) + self.text[stop:]

    def _tail(self, space: str, outer: str) -> str:
        """Return what follows the only member of an object in which there was this space before."""
        return f"  {space}" if _has_break(space) else f" {self.newline}{outer}{space}"

    def _space(self, tail: str, outer: str) -> str:
        """Return the space that was in an object before, from what follows its only member."""
        if tail.startswith("  "):
            return tail[2:]
        return tail.removeprefix(f" {self.newline}{outer}")

    def cut(self, owner: Value, member: Member) -> str | None:
        """Return the text without a member; None where its object came and goes with it."""
        members = owner.members or ()
        index = members.index(member)
        before = [owner.start + 1, *(comment.end for comment in self.comments(owner.start, member.start))]
        if index:
            before.append((members[index - 1].comma or 0) + 1)
        start, end = max(before), member.value.end
        if len(members) == 1:
            return self._empty(owner, member, start)
        if member.comma is not None:
            after = self.text[end : member.comma] + self.text[member.comma + 1 :]
            return self._close_gap(start, member, after)
        comma = members[index - 1].comma or 0
        return self.text[:comma] + self.text[comma + 1 : start] + self.text[end:]

    def _close_gap(self, start: int, member: Member, after: str) -> str:
        """Join what is before and after a member; of two spaces the one with a line break stays."""
        gap, space = self.text[start : member.start], after[: len(after) - len(after.lstrip(" \t"))]
        if _has_break(gap) and not after[len(space) :].startswith(("\r", "\n", "}")):
            return self.text[: member.start] + after[len(space) :]
        return self.text[:start] + after

    def _empty(self, owner: Value, member: Member, start: int) -> str | None:
        """Return the text without the only member of an object."""
        stop, end = owner.end - 1, member.value.end
        behind = (
            self.text[end:stop]
            if member.comma is None
            else (self.text[end : member.comma] + self.text[member.comma + 1 : stop])
        )
        outer = self.indent(owner.start)
        if self.comments(end, stop):
            return self.text[:start] + behind + self.text[stop:]
        if not self.comments(owner.start, member.start) and behind in ("", self.newline + outer):
            return None
        return self.text[:start] + self._space(behind, outer) + self.text[stop:]

    def without_root(self, root: Value) -> str | None:
        """Return what was there before the whole object came."""
        before, after = self.text[: root.start], self.text[root.end :]
        is_ours = self.text.startswith(self.newline, root.start + 1)
        if is_ours and not before and after == self.newline:
            return None
        if is_ours and after == self.newline * 2:
            return before.removesuffix(self.newline)
        return before + "{}" + after


def newline(text: str) -> str:
    """Return the first line ending of a text."""
    match = _BREAK.search(text)
    return match.group() if match else "\n"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Half of a surrogate pair is JSON only as an escape.
    return json.dumps(value) if any("\ud800" <= c <= "\udfff" for c in text) else text
