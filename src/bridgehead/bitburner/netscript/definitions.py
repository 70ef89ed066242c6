"""Definitions: the declarations of the game's TypeScript definition file. Pure.

A declaration is a function, property, type or enum with the comment before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from textwrap import dedent
from typing import TYPE_CHECKING

from msgspec import Struct

from . import parsing

if TYPE_CHECKING:
    from tree_sitter import Node

ROOT = "NS"
_MAX_INDENT = 20
_MAX_ANCESTORS = 3
_MAX_DEPTH = 3
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
_METHODS = frozenset({"method_signature", "abstract_method_signature", "method_definition"})
_BODIES = frozenset({"interface_body", "object_type", "enum_body", "class_body"})
_RAM = re.compile(r"RAM cost:\s*([\d.]+)\s*GB(?P<scaled>\s*\*\s*16/4/1)?", re.IGNORECASE)
_COMMENT_EDGES = re.compile(r"^\s*(?:/\*\*|\*/|\*)? ?|\*/\s*$", re.MULTILINE)


class Declaration(Struct, frozen=True):
    """One declaration."""

    symbol: str
    line: int
    text: str
    """The source, with its comment."""
    signature: str
    comment: str
    is_function: bool = False
    type_name: str = ""
    """The type of a property if it is a plain name."""
    ram: float | None = None
    bases: tuple[str, ...] = ()
    """The interfaces that an interface extends."""
    is_scaled: bool = False
    """Whether the cost is 16 or 4 times as much without all levels of Source-File 4."""

    @property
    def name(self) -> str:
        """The last part of the symbol."""
        return self.symbol.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """The symbol that it is a member of; empty at the top level."""
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
        self.overloads: dict[str, list[Declaration]] = {}
        """All declarations of a symbol: a function may be declared several times."""
        self.members: dict[str, dict[str, Declaration]] = {}
        """The members of each interface, with those that it inherits."""
        for declaration in self.declarations:
            self.by_symbol.setdefault(declaration.symbol, declaration)
            self.overloads.setdefault(declaration.symbol, []).append(declaration)
            if declaration.owner:
                self.members.setdefault(declaration.owner, {}).setdefault(declaration.name, declaration)
        # Each round copies members one level down, in whatever order the file declares the interfaces.
        for _ in range(_MAX_ANCESTORS):
            for declaration in self.declarations:
                for base in declaration.bases:
                    for name, member in self.members.get(base, {}).items():
                        self.members.setdefault(declaration.symbol, {}).setdefault(name, member)

    @cached_property
    def namespaces(self) -> dict[str, str]:
        """The interface behind each path of the API: "" is NS itself, "singularity" is Singularity."""
        interfaces: dict[str, str] = {"": ROOT}
        waiting = [""]
        while waiting:
            path = waiting.pop()
            for member in self.members.get(interfaces[path], {}).values():
                inner = f"{path}.{member.name}".lstrip(".")
                # A namespace is a property whose type has functions; the depth limit ends recursive types.
                inner_members = self.members.get(member.type_name, {}).values()
                has_functions = any(inner_member.is_function for inner_member in inner_members)
                if inner not in interfaces and inner.count(".") < _MAX_DEPTH and has_functions:
                    interfaces[inner] = member.type_name
                    waiting.append(inner)
        return interfaces

    def find_path(self, path: str) -> Declaration | None:
        """Return the declaration behind a path such as `singularity.connect` or `hack`."""
        parent, _, name = path.rpartition(".")
        interface = self.namespaces.get(parent)
        return None if interface is None else self.members.get(interface, {}).get(name)

    @cached_property
    def functions_by_name(self) -> dict[str, list[tuple[str, Declaration]]]:
        """Every function of the API with its path, by its bare name: the game counts RAM by names."""
        functions: dict[str, list[tuple[str, Declaration]]] = {}
        for path, interface in self.namespaces.items():
            for member in self.members.get(interface, {}).values():
                if member.is_function:
                    functions.setdefault(member.name, []).append(
                        (f"{path}.{member.name}".lstrip("."), member)
                    )
        return functions


def _read(text: str) -> Iterator[Declaration]:
    source = text.encode()
    root = parsing.parse_definitions(source)
    comment: Node | None = None
    for node in root.named_children:
        if node.type == "comment":
            comment = node
            continue
        # `export declare interface X` is wrapped twice: unwrap it down to the interface.
        declared: Node | None = node
        while declared is not None and declared.type in ("export_statement", "ambient_declaration"):
            declared = next((child for child in declared.named_children if child.type != "comment"), None)
        if declared is not None and declared.type in _TOPS:
            yield from _read_top(source, declared, node, comment)
        comment = None


def _read_top(source: bytes, declared: Node, whole: Node, comment: Node | None) -> Iterator[Declaration]:
    """Yield a top-level declaration and its members."""
    named = declared
    if declared.type in ("lexical_declaration", "variable_declaration"):
        declarators = (child for child in declared.named_children if child.type == "variable_declarator")
        named = next(declarators, declared)
    name = named.child_by_field_name("name")
    if name is None:
        return
    symbol = parsing.text_of(name, source)
    is_function = declared.type in ("function_signature", "function_declaration")
    clause = next((child for child in declared.named_children if child.type == "extends_type_clause"), None)
    bases = () if clause is None else tuple(parsing.text_of(base, source) for base in clause.named_children)
    yield _make(source, symbol, whole, comment, is_function=is_function, bases=bases)
    body = next((node for node in parsing.walk(named) if node.type in _BODIES), None)
    comment = None
    for node in body.named_children if body is not None else ():
        if node.type == "comment":
            comment = node
        elif node.type in _MEMBERS:
            name = node.child_by_field_name("name") or (node if node.type == "property_identifier" else None)
            if name is not None:
                annotation = node.child_by_field_name("type")
                typed = annotation.named_children[0] if annotation and annotation.named_children else None
                yield _make(
                    source,
                    f"{symbol}.{parsing.text_of(name, source).strip(chr(34) + chr(39))}",
                    node,
                    comment,
                    is_function=node.type in _METHODS
                    or (typed is not None and typed.type == "function_type"),
                    type_name=parsing.text_of(typed, source)
                    if typed and typed.type == "type_identifier"
                    else "",
                )
            comment = None


def _make(
    source: bytes,
    symbol: str,
    node: Node,
    comment: Node | None,
    *,
    is_function: bool,
    type_name: str = "",
    bases: tuple[str, ...] = (),
) -> Declaration:
    signature = parsing.text_of(node, source)
    above = "" if comment is None else parsing.text_of(comment, source)
    description = _COMMENT_EDGES.sub("", above).strip()
    # The grammar makes the semicolon behind a member a sibling of it.
    end = ";" if node.next_sibling is not None and node.next_sibling.type == ";" else ""
    # More is no indentation: in a file of one line, every declaration would become as long as the file.
    text, first = f"{' ' * min(node.start_point[1], _MAX_INDENT)}{signature}{end}", node
    if comment is not None:
        text = f"{' ' * min(comment.start_point[1], _MAX_INDENT)}{above}\n{text}"
        first = comment
    cost = _RAM.search(description)
    return Declaration(
        symbol=symbol,
        line=first.start_point[0] + 1,
        text=dedent(text),
        signature=signature,
        comment=description,
        is_function=is_function,
        type_name=type_name,
        bases=bases,
        ram=float(cost[1]) if cost else None,
        is_scaled=bool(cost and cost["scaled"]),
    )
