"""JSON edit: puts one member into an object of a JSON text, or takes it out, and changes nothing else.

`take` is the exact inverse of `put`, from the text alone. An object that was empty before `put` is marked:
its former whitespace stands after our member, behind an extra blank that no formatter writes (`append`). An
object that `put` created has no such mark, so `take` removes it together with our member.
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
    """Decode a text; its root, and the section if present, must be objects."""
    document = parse(text)
    if document.root is None:
        return {}
    holder = _find(_members(document, document.root), section)
    if holder is not None:
        _members(document, holder.value)
    data: dict[str, Any] = document.root.data
    return data


def put(text: str | None, section: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with an entry in a section of its root; None stands for a missing file."""
    page = _Page(parse(text or ""))
    root = page.document.root
    if root is None:
        rendered = page.render({section: {name: entry}}, "")
        before = f"{text}{page.newline}" if text else ""
        # A second line break marks a file that existed without an object (see `without_root`).
        return before + rendered + page.newline * (1 if text is None else 2)
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
    """Return the text without an entry; None if `put` had created the file."""
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


def same(left: Any, right: Any) -> bool:
    """Compare two values as JSON: in Python, `True == 1`."""
    return _canonical(left) == _canonical(right)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)  # `default`: TOML has dates


def _find(members: tuple[Member, ...], key: str) -> Member | None:
    """Return the last member with this key: duplicates override earlier ones, as in every JSON parser."""
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
        self.unit = _UNIT
        root = document.root
        if root is not None and root.members and self._is_first(root.members[0].start):
            indent, outer = self.indent(root.members[0].start), self.indent(root.start)
            self.unit = indent.removeprefix(outer) or _UNIT

    def _line_start(self, position: int) -> int:
        return max(self.text.rfind("\n", 0, position), self.text.rfind("\r", 0, position)) + 1

    def _is_first(self, position: int) -> bool:
        """Tell whether only whitespace precedes a position on its line."""
        return not self.text[self._line_start(position) : position].strip(" \t")

    def indent(self, position: int) -> str:
        """Return the indentation of the line of a position."""
        line = self.text[self._line_start(position) :]
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
            start, stop = owner.start + 1, owner.end - 1
            comments = self.comments(start, stop)
            place = comments[-1].end if comments else start
            outer = self.indent(owner.start)
            indent = outer + self.unit
            written = f"{self.newline}{indent}{_json(key)}: {self.render(value, indent)}"
            # The extra blanks mark an object that was empty; `_cut_only_member` reads them.
            space = self.text[place:stop]
            tail = f"  {space}" if _has_break(space) else f" {self.newline}{outer}{space}"
            return self.text[:place] + written + tail + self.text[stop:]
        last = owner.members[-1]
        place = last.value.end if last.comma is None else last.comma + 1
        # Comments on the line of the last member belong to it, so the new one goes after them.
        end, needs_break = place, False
        for comment in self.comments(place, owner.end - 1):
            if _has_break(self.text[end : comment.start]):
                break
            end = comment.end
            if comment.is_line:
                needs_break = True  # or the new member would be part of the comment
                break
        is_inline = not needs_break and not _has_break(self.text[owner.start : owner.members[0].start])
        indent = self.indent(last.start if self._is_first(last.start) else owner.start)
        if not self._is_first(last.start):
            indent += self.unit
        gap = " " if is_inline else self.newline + indent
        written = f"{gap}{_json(key)}: {self.render(value, indent, is_inline=is_inline)}"
        if last.comma is None:
            return self.text[:place] + "," + self.text[place:end] + written + self.text[end:]
        return self.text[:end] + written + "," + self.text[end:]  # keep the style of trailing commas

    def cut(self, owner: Value, member: Member) -> str | None:
        """Return the text without a member; None if `put` had created its object."""
        members = owner.members or ()
        index = members.index(member)
        before = [owner.start + 1, *(comment.end for comment in self.comments(owner.start, member.start))]
        if index:
            # `or 0` only for the type: a member that another follows has a comma.
            before.append((members[index - 1].comma or 0) + 1)
        start, end = max(before), member.value.end
        if len(members) == 1:
            return self._cut_only_member(owner, member, start)
        if member.comma is not None:
            after = self.text[end : member.comma] + self.text[member.comma + 1 :]
            gap, space = self.text[start : member.start], after[: len(after) - len(after.lstrip(" \t"))]
            # Of the whitespace before and after the member, keep the one with the line break.
            if _has_break(gap) and not after[len(space) :].startswith(("\r", "\n", "}")):
                return self.text[: member.start] + after[len(space) :]
            return self.text[:start] + after
        # The last member without a trailing comma: the comma before it goes with it.
        comma = members[index - 1].comma or 0
        return self.text[:comma] + self.text[comma + 1 : start] + self.text[end:]

    def _cut_only_member(self, owner: Value, member: Member, start: int) -> str | None:
        stop, end = owner.end - 1, member.value.end
        tail = (
            self.text[end:stop]
            if member.comma is None
            else (self.text[end : member.comma] + self.text[member.comma + 1 : stop])
        )
        outer = self.indent(owner.start)
        if self.comments(end, stop):  # not written by us, so the object stays
            return self.text[:start] + tail + self.text[stop:]
        if not self.comments(owner.start, member.start) and tail in ("", self.newline + outer):
            return None  # no mark: the object came with our member
        # Undo what `append` did to the whitespace of an empty object.
        space = tail[2:] if tail.startswith("  ") else tail.removeprefix(f" {self.newline}{outer}")
        return self.text[:start] + space + self.text[stop:]

    def without_root(self, root: Value) -> str | None:
        """Return the text before `put` created the root; None if it created the file."""
        before, after = self.text[: root.start], self.text[root.end :]
        is_ours = self.text.startswith(self.newline, root.start + 1)
        if is_ours and not before and after == self.newline:
            return None
        if is_ours and after == self.newline * 2:
            return before.removesuffix(self.newline)
        return before + "{}" + after


def newline(text: str) -> str:
    """Return the first line ending of a text; a line feed if it has none."""
    match = _BREAK.search(text)
    return match.group() if match else "\n"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # A lone surrogate cannot be encoded in UTF-8; JSON can hold it only as an escape.
    return json.dumps(value) if any("\ud800" <= c <= "\udfff" for c in text) else text
