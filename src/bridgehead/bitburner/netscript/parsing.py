"""Parsing: syntax trees of JavaScript and TypeScript, by tree-sitter. The only module that loads it.

Imported with the first script or definition file that is parsed, never before a server's first answer.

`Tree` copies tree-sitter's tree into nodes of our own in one pass. A tree-sitter node finds its parent by
descending from the root, so code that climbs would cost depth squared; here the parent, the function and the
scope around a node are fields.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from operator import attrgetter

import tree_sitter
import tree_sitter_javascript
import tree_sitter_typescript
from msgspec import Struct
from tree_sitter import Language, Parser

FUNCTIONS = frozenset(
    {
        "arrow_function",
        "function_declaration",
        "function_expression",
        "generator_function",
        "generator_function_declaration",
        "method_definition",
    }
)
SCOPES = FUNCTIONS | {
    "program",
    "statement_block",
    "for_statement",
    "for_in_statement",
    "catch_clause",
    "class_body",
    "class_static_block",
    "switch_body",
}
_TYPE = attrgetter("type")
_MAX_SHOWN = 30
_READ_BYTES = 512
MAX_BYTES = 1_000_000
MAX_NODES = 600_000
"""Beyond either, a source is not read: its nodes would take more than 200 MB."""
_JSX_TEXT = re.compile(rb">[^<>{}]*(?=[<{])")
_IMPORTED_TYPE = re.compile(rb"\bimport\(\s{0,9}[\"'][^\"'()\n]*[\"']\s{0,9}\)\.(?=[A-Z])")
_INDEX_SIGNATURE = re.compile(
    rb"\[\s{0,9}\w{1,99}\s{0,9}:\s{0,9}(?:string|number|symbol)\s{0,9}\](?=\s{0,9}:)"
)
_TYPE_STAR = re.compile(rb"(\bexport\s+)type(\s*\*)")
_DEFAULT_FUNCTION = re.compile(rb"\bexport default function\(")


class SyntaxProblem(Struct, frozen=True):
    """The first syntax error of a source."""

    message: str
    start: int
    """Offset in bytes."""


class TooLarge(Exception):
    """The source is longer than `MAX_BYTES` or has more than `MAX_NODES`."""


class Node:
    """A node of a script's tree; `children` includes keywords and punctuation, `named` does not."""

    __slots__ = (
        "children",
        "end",
        "fields",
        "function",
        "is_named",
        "parent",
        "previous",
        "scope",
        "source",
        "start",
        "type",
    )

    def __init__(self, node: tree_sitter.Node, parent: Node | None, source: bytes) -> None:
        self.type = node.type
        self.is_named = node.is_named
        self.start = node.start_byte
        self.end = node.end_byte
        self.source = source
        self.parent = parent
        self.children: list[Node] = []
        self.fields: dict[str, Node] | None = None
        self.function: Node | None = None
        """The function around it; None at the top level and in a class's static block."""
        self.scope: Node | None = None
        """The scope around it."""
        self.previous: Node | None = None
        """The previous sibling; may be a comment, but not a keyword or sign."""
        if parent is not None:
            self.function = parent if parent.type in FUNCTIONS else parent.function
            self.scope = parent if parent.type in SCOPES else parent.scope

    @property
    def text(self) -> str:
        """Its source."""
        return self.source[self.start : self.end].decode("utf-8", "replace")

    @property
    def named(self) -> list[Node]:
        """Its children without keywords, punctuation and comments."""
        return [child for child in self.children if child.is_named and child.type != "comment"]

    def field(self, name: str) -> Node | None:
        """Return the child with a role in the grammar, such as `name` or `body`."""
        return None if self.fields is None else self.fields.get(name)

    def has_token(self, token: str) -> bool:
        """Return whether a keyword or a sign is one of its children."""
        return token in map(_TYPE, self.children)


class Tree:
    """A parsed script; raises TooLarge."""

    def __init__(self, source: str, filename: str) -> None:
        self.source = source.encode("utf-8", "replace")
        self.filename = filename
        if len(self.source) > MAX_BYTES:
            raise TooLarge
        parsed = _parse(self.source, filename)
        if parsed.descendant_count > MAX_NODES:
            raise TooLarge
        self.nodes: list[Node] = []
        """Every node in source order, a parent before its children."""
        self.depth = 0
        """How deep its nodes are nested."""
        self._copy(parsed)
        self.root = self.nodes[0]
        self.problem = _find_broken(parsed, self.source) if parsed.has_error else self._find_stray_return()
        """The first syntax error; None if none is certain."""
        self._lines: list[int] | None = None

    def close(self) -> None:
        """Free the nodes. Parents and children form reference cycles, so they would stay until a collection.

        The garbage collector would free them all at once while every client waits (0.2 s for the longest
        script that is checked). Node by node, other threads run in between.
        """
        while self.nodes:
            node = self.nodes.pop()
            node.children.clear()
            node.fields = node.previous = None

    def place_of(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset in bytes, both counted from 1, the column in characters."""
        if self._lines is None:
            self._lines = [0]
            while (line_end := self.source.find(b"\n", self._lines[-1])) != -1:
                self._lines.append(line_end + 1)
        line = bisect_right(self._lines, offset)
        before = self.source[self._lines[line - 1] : offset]
        return line, len(before.decode("utf-8", "replace")) + 1

    def _copy(self, root: tree_sitter.Node) -> None:
        """Copy the tree without recursion: nesting may be deep."""
        cursor = root.walk()
        source, nodes = self.source, self.nodes
        current = Node(root, None, source)
        nodes.append(current)
        depth = 0
        while True:
            if cursor.goto_first_child():
                parent = current
                depth += 1
                self.depth = max(self.depth, depth)
            else:
                while not cursor.goto_next_sibling():
                    if current.parent is None or not cursor.goto_parent():
                        return
                    current = current.parent
                    depth -= 1
                if current.parent is None:
                    return
                parent = current.parent
            current = Node(cursor.node or root, parent, source)
            nodes.append(current)
            if parent.children:
                last = parent.children[-1]
                current.previous = last if last.is_named else last.previous
            parent.children.append(current)
            role = cursor.field_name
            if role is not None:
                if parent.fields is None:
                    parent.fields = {}
                parent.fields.setdefault(role, current)

    def _find_stray_return(self) -> SyntaxProblem | None:
        """tree-sitter accepts a `return` at the top level, where the game fails."""
        for node in self.nodes:
            if node.type == "return_statement" and node.function is None:
                return SyntaxProblem("'return' outside of a function", node.start)
        return None


@cache
def _load_language(kind: str) -> Language:
    languages = {
        "js": tree_sitter_javascript.language,
        "ts": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
    }
    return Language(languages[kind]())


def parse_definitions(source: bytes) -> tree_sitter.Node:
    """Return tree-sitter's own tree of a definition file: it is long, flat, and read once from the top."""
    return _parse(source, "definitions.d.ts")


def _parse(source: bytes, filename: str) -> tree_sitter.Node:
    """Return tree-sitter's own tree; the file's extension decides the language."""
    kind = {"ts": "ts", "tsx": "tsx"}.get(filename.rpartition(".")[2], "js")
    parsed = _parse_in_pieces(source, kind)
    if not parsed.has_error:
        return parsed
    # The grammar lacks `export type *` and wants a line's end after `export default function() {}`, both of
    # which the game accepts. The replacements keep every offset.
    accepted = _TYPE_STAR.sub(rb"\1    \2", source)
    accepted = _DEFAULT_FUNCTION.sub(b"function _(".rjust(len(b"export default function(")), accepted)
    # It also takes `&` in the text of JSX for an entity. Between expressions, `|` parses the same.
    accepted = _JSX_TEXT.sub(lambda text: text[0].replace(b"&", b"|"), accepted)
    if kind != "js":
        # It knows `import("./x").T` only without `[]` and `<…>` behind it, and `[key: string]: T` not after a
        # field of a class.
        accepted = _IMPORTED_TYPE.sub(lambda found: b" " * len(found[0]), accepted)
        accepted = _INDEX_SIGNATURE.sub(lambda found: b"_".ljust(len(found[0])), accepted)
    return parsed if accepted == source else _parse_in_pieces(accepted, kind)


def _parse_in_pieces(source: bytes, kind: str) -> tree_sitter.Node:
    """Parse a source that tree-sitter reads by a callback, and so lets other threads run in between.

    Given the whole source, it holds the interpreter until the end: 0.4 s for 280 KB of open brackets.
    """
    # tree-sitter 0.26 never releases what the callback returns: with a new piece each time, every source that
    # was ever parsed would stay in memory. It needs a piece only until it asks for the next one. But the
    # `text` of its nodes, which asks again, crashes for anything but bytes, so `text_of` avoids it.
    piece = bytearray()

    def read(start: int, _place: tree_sitter.Point) -> bytearray:
        piece[:] = source[start : start + _READ_BYTES]
        return piece

    # A parser of its own: a shared one would be used by another thread in the middle of a source.
    root = Parser(_load_language(kind)).parse(read).root_node
    piece.clear()
    return root


def walk(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Yield a node of a definition file and everything below it in source order."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.named_children))


def text_of(node: tree_sitter.Node, source: bytes) -> str:
    """Return the source of a node of tree-sitter's own tree."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def string_value(node: Node | None) -> str | None:
    """Return the value of a plain string literal; None for anything else."""
    if node is None or node.type != "string":
        return None
    return "".join(part.text for part in node.named)


def _find_broken(root: tree_sitter.Node, source: bytes) -> SyntaxProblem:
    node = root
    # Down to the innermost broken node: the outer ones span most of the file.
    while True:
        broken = next(
            (child for child in node.children if child.has_error or child.is_missing or child.is_error), None
        )
        if broken is None or (node.is_error and not broken.has_error):
            break
        node = broken
        if node.is_missing:
            return SyntaxProblem(f"'{node.type}' is missing", node.start_byte)
    place = next((child for child in node.children if child.is_error), node)
    shown = text_of(place, source).strip().split("\n")[0][:_MAX_SHOWN]
    return SyntaxProblem(f"unexpected '{shown}'" if shown else "unexpected end of the file", place.start_byte)
