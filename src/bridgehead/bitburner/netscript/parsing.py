"""Parsing: JavaScript and TypeScript as trees, by tree-sitter. The one place that loads it.

Loaded with the first script or definition file that is looked at, never before a server's first answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import tree_sitter_javascript
import tree_sitter_typescript
from msgspec import Struct
from tree_sitter import Language, Node, Parser

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
_BODIES = FUNCTIONS | {"class_static_block"}
_LONGEST_SHOWN = 30


class SyntaxProblem(Struct, frozen=True):
    """The first place at which a source cannot be a script."""

    message: str
    line: int
    column: int


@cache
def _make_parser(kind: str) -> Parser:
    languages = {
        "js": tree_sitter_javascript.language,
        "ts": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
    }
    return Parser(Language(languages[kind]()))


def parse(source: bytes, filename: str) -> Node:
    """Return the tree of a source; its file name tells the language."""
    kind = {"ts": "ts", "tsx": "tsx"}.get(filename.rpartition(".")[2], "js")
    return _make_parser(kind).parse(source).root_node


def walk(node: Node) -> Iterator[Node]:
    """Go over a node and everything below it, in the order of the source, without recursion."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.named_children))


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def string_value(node: Node) -> str | None:
    """Return what a plain string literal holds; None for anything else."""
    if node.type != "string":
        return None
    return "".join(text_of(part) for part in node.named_children)


def place_of(node: Node) -> tuple[int, int]:
    """Return line and column of a node, counted from 1; the column in bytes, see `count_characters`."""
    row, column = node.start_point
    return row + 1, column + 1


def count_characters(source: str, line: int, column: int) -> int:
    """Return the column in characters of a column in bytes."""
    before = source.split("\n", line)[line - 1].encode()[: column - 1]
    return len(before.decode("utf-8", "replace")) + 1


def find_syntax_problem(root: Node) -> SyntaxProblem | None:
    """Return the first syntax error, as far as it is certain."""
    if root.has_error:
        return _find_error(root)
    for node in walk(root):
        if node.type == "return_statement" and not _is_in_function(node):
            return SyntaxProblem("'return' outside of a function", *place_of(node))
    return None


def _find_error(root: Node) -> SyntaxProblem:
    node = root
    while True:
        broken = next((one for one in node.children if one.has_error or one.is_missing or one.is_error), None)
        if broken is None or (node.is_error and not broken.has_error):
            break
        node = broken
        if node.is_missing:
            return SyntaxProblem(f"'{node.type}' is missing", *place_of(node))
    found = next((text_of(one) for one in node.children if one.is_error), text_of(node)).strip()
    shown = found.split("\n")[0][:_LONGEST_SHOWN]
    place = next((one for one in node.children if one.is_error), node)
    return SyntaxProblem(f"unexpected '{shown}'" if shown else "unexpected end of the file", *place_of(place))


def _is_in_function(node: Node) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.type in _BODIES:
            return True
        parent = parent.parent
    return False
