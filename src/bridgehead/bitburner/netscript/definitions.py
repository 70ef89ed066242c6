"""Definitions: the game's TypeScript definition file as declarations that can be found and checked against.

A declaration is a function, property, type or enum with the comment before it. Takes text and returns values.
"""

from __future__ import annotations

import re
from functools import cached_property
from textwrap import dedent
from typing import TYPE_CHECKING

from msgspec import Struct

from . import parsing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

ROOT = "NS"
_MOST_ANCESTORS = 3
_TOPS = frozenset(
    {
        "interface_declaration",
        "type_alias_declaration",
        "enum_declaration",
        "class_declaration",
        "abstract_class_declaration",
        "function_signature",
        "function_declaration",
        "lexical_declaration",
        "variable_declaration",
        "internal_module",
        "module",
    }
)
_MEMBERS = frozenset(
    {
        "method_signature",
        "abstract_method_signature",
        "method_definition",
        "property_signature",
        "public_field_definition",
        "enum_assignment",
        "property_identifier",
        "call_signature",
    }
)
_BODIES = frozenset({"interface_body", "object_type", "enum_body", "class_body"})
_RAM = re.compile(r"RAM cost:\s*([\d.]+)\s*GB(?P<scaled>\s*\*\s*16/4/1)?", re.IGNORECASE)
_COMMENT_EDGES = re.compile(r"^\s*(?:/\*\*|\*/|\*)? ?|\*/\s*$", re.MULTILINE)


class Declaration(Struct, frozen=True):
    """One declaration."""

    symbol: str
    line: int
    text: str
    """With its comment."""
    signature: str
    comment: str
    is_function: bool = False
    type_name: str = ""
    """The type of a property, where it is a plain name."""
    ram: float | None = None
    bases: tuple[str, ...] = ()
    """The interfaces that an interface extends."""
    is_scaled: bool = False
    """Whether the cost is 16 or 4 times as much without enough of Source-File 4."""

    @property
    def name(self) -> str:
        """The last part of the symbol."""
        return self.symbol.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """What it is a member of."""
        return self.symbol.rpartition(".")[0]

    @property
    def summary(self) -> str:
        """The first sentence or line of its comment."""
        first = self.comment.strip().split("\n\n")[0].replace("\n", " ")
        return first.partition("@")[0].strip()


class Definitions:
    """The declarations of one definition file."""

    def __init__(self, text: str) -> None:
        self.declarations = list(_read(text))
        self.by_symbol: dict[str, Declaration] = {}
        self.members: dict[str, dict[str, Declaration]] = {}
        """The members of each interface, with those that it inherits."""
        for one in self.declarations:
            self.by_symbol.setdefault(one.symbol, one)
            if one.owner:
                self.members.setdefault(one.owner, {}).setdefault(one.name, one)
        self._inherit()

    def _inherit(self) -> None:
        for _ in range(_MOST_ANCESTORS):
            for one in self.declarations:
                for base in one.bases:
                    for name, member in self.members.get(base, {}).items():
                        self.members.setdefault(one.symbol, {}).setdefault(name, member)

    @cached_property
    def namespaces(self) -> dict[str, str]:
        """The interface behind each path of the API: "" is NS itself, "singularity" is Singularity."""
        found: dict[str, str] = {"": ROOT}
        waiting = [""]
        while waiting:
            path = waiting.pop()
            for member in self.members.get(found[path], {}).values():
                inner = f"{path}.{member.name}".lstrip(".")
                if self._is_namespace(member.type_name) and inner not in found and inner.count(".") < 3:  # noqa: PLR2004 - no API is as deep
                    found[inner] = member.type_name
                    waiting.append(inner)
        return found

    def _is_namespace(self, type_name: str) -> bool:
        return any(member.is_function for member in self.members.get(type_name, {}).values())

    def find_path(self, path: str) -> Declaration | None:
        """Return what a path such as `singularity.connect` or `hack` means in a script."""
        parent, _, name = path.rpartition(".")
        interface = self.namespaces.get(parent)
        return None if interface is None else self.members.get(interface, {}).get(name)

    @cached_property
    def functions_by_name(self) -> dict[str, list[tuple[str, Declaration]]]:
        """Every function of the API with its path, by its name alone: the game counts RAM by names."""
        found: dict[str, list[tuple[str, Declaration]]] = {}
        for path, interface in self.namespaces.items():
            for member in self.members.get(interface, {}).values():
                if member.is_function:
                    found.setdefault(member.name, []).append((f"{path}.{member.name}".lstrip("."), member))
        return found


def _read(text: str) -> Iterator[Declaration]:
    root = parsing.parse(text.encode(), "definitions.d.ts")
    comment: Node | None = None
    for node in root.named_children:
        if node.type == "comment":
            comment = node
            continue
        declared = _unwrap(node)
        if declared is not None:
            yield from _read_top(declared, node, comment)
        comment = None


def _unwrap(node: Node) -> Node | None:
    """Return the declaration inside of `export` and `declare`."""
    while node.type in ("export_statement", "ambient_declaration"):
        inner = next((one for one in node.named_children if one.type != "comment"), None)
        if inner is None:
            return None
        node = inner
    return node if node.type in _TOPS else None


def _read_top(declared: Node, whole: Node, comment: Node | None) -> Iterator[Declaration]:
    named = declared
    if declared.type in ("lexical_declaration", "variable_declaration"):
        named = next((one for one in declared.named_children if one.type == "variable_declarator"), declared)
    name = named.child_by_field_name("name")
    if name is None:
        return
    symbol = parsing.text_of(name)
    is_function = declared.type in ("function_signature", "function_declaration")
    yield _make(symbol, whole, comment, is_function=is_function, bases=_read_bases(declared))
    body = next((one for one in parsing.walk(named) if one.type in _BODIES), None)
    if body is not None:
        yield from _read_members(symbol, body)


def _read_bases(declared: Node) -> tuple[str, ...]:
    clause = next((one for one in declared.named_children if one.type == "extends_type_clause"), None)
    return () if clause is None else tuple(parsing.text_of(one) for one in clause.named_children)


def _read_members(owner: str, body: Node) -> Iterator[Declaration]:
    comment: Node | None = None
    for node in body.named_children:
        if node.type == "comment":
            comment = node
        elif node.type in _MEMBERS:
            name = node.child_by_field_name("name") or (node if node.type == "property_identifier" else None)
            if name is not None:
                symbol = f"{owner}.{parsing.text_of(name).strip(chr(34) + chr(39))}"
                yield _make(symbol, node, comment, is_function=_is_function(node), type_name=_type_name(node))
            comment = None


def _is_function(node: Node) -> bool:
    if node.type in ("method_signature", "abstract_method_signature", "method_definition"):
        return True
    annotation = node.child_by_field_name("type")
    inner = annotation.named_children if annotation is not None else []
    return bool(inner) and inner[0].type == "function_type"


def _type_name(node: Node) -> str:
    annotation = node.child_by_field_name("type")
    inner = annotation.named_children if annotation is not None else []
    return parsing.text_of(inner[0]) if inner and inner[0].type == "type_identifier" else ""


def _make(
    symbol: str,
    node: Node,
    comment: Node | None,
    *,
    is_function: bool,
    type_name: str = "",
    bases: tuple[str, ...] = (),
) -> Declaration:
    signature = parsing.text_of(node)
    said = _clean(parsing.text_of(comment)) if comment is not None else ""
    end = ";" if node.next_sibling is not None and node.next_sibling.type == ";" else ""
    text, first = f"{' ' * node.start_point[1]}{signature}{end}", node
    if comment is not None:
        text = f"{' ' * comment.start_point[1]}{parsing.text_of(comment)}\n{text}"
        first = comment
    cost = _RAM.search(said)
    return Declaration(
        symbol=symbol,
        line=first.start_point[0] + 1,
        text=dedent(text),
        signature=signature,
        comment=said,
        is_function=is_function,
        type_name=type_name,
        bases=bases,
        ram=float(cost[1]) if cost else None,
        is_scaled=bool(cost and cost["scaled"]),
    )


def _clean(comment: str) -> str:
    """Return a comment without its stars."""
    return _COMMENT_EDGES.sub("", comment).strip()
