"""Parsing: syntax trees of JavaScript and TypeScript, by tree-sitter. The only module that loads it.

Imported with the first script or definition file that is parsed, never before a server's first answer.
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
_MAX_SHOWN = 30


class SyntaxProblem(Struct, frozen=True):
    """The first syntax error of a source."""

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
    """Return the tree of a source; the file's extension decides the language."""
    kind = {"ts": "ts", "tsx": "tsx"}.get(filename.rpartition(".")[2], "js")
    return _make_parser(kind).parse(source).root_node


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it in source order. Not recursive: nesting may be deep."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.named_children))


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def string_value(node: Node) -> str | None:
    """Return the value of a plain string literal; None for anything else."""
    if node.type != "string":
        return None
    return "".join(text_of(part) for part in node.named_children)


def place_of(node: Node) -> tuple[int, int]:
    """Return line and column of a node, counted from 1. The column is in bytes (see `count_characters`)."""
    row, column = node.start_point
    return row + 1, column + 1


def count_characters(source: str, line: int, column: int) -> int:
    """Convert a column in bytes to a column in characters."""
    before = source.split("\n", line)[line - 1].encode()[: column - 1]
    return len(before.decode("utf-8", "replace")) + 1


def find_syntax_problem(root: Node) -> SyntaxProblem | None:
    """Return the first syntax error; None if none is certain."""
    if not root.has_error:
        # tree-sitter accepts a `return` at the top level, where the game fails.
        for node in walk(root):
            if node.type == "return_statement":
                parent = node.parent
                while parent is not None and parent.type not in _BODIES:
                    parent = parent.parent
                if parent is None:
                    return SyntaxProblem("'return' outside of a function", *place_of(node))
        return None
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
            return SyntaxProblem(f"'{node.type}' is missing", *place_of(node))
    place = next((child for child in node.children if child.is_error), node)
    shown = text_of(place).strip().split("\n")[0][:_MAX_SHOWN]
    return SyntaxProblem(f"unexpected '{shown}'" if shown else "unexpected end of the file", *place_of(place))
