"""Results: the types of the values that a script gets from the API, as far as they are certain.

Follows the result of a call through `await`, variables, destructuring, fields, elements, `for … of` and the
callbacks of an array's methods. A value that may have another type counts as unknown. Each expression is
resolved once.
"""

from __future__ import annotations

import re

from .definitions import Definitions
from .parsing import Node
from .scopes import ELEMENT, Binding, Scopes
from .signatures import Kinds, Signatures

Type = frozenset[str]
"""The names of a union's parts, without null and undefined; empty if it is not known."""
UNKNOWN: Type = frozenset()
_MAX_CHAIN = 200
"""Expressions followed in a row, each by recursion."""
_PART = re.compile(r"(?:\w+|Promise<[\w |]+>|\w+ & \{[^{}]*\})(?:\[\])*")
"""The understood parts of a union: names, promises, interfaces with further fields, lists of these."""
_BETWEEN_PARTS = re.compile(r"\|(?![^<{]*[>}])")
_NOTHING = frozenset({"null", "undefined"})
_WRAPPERS = frozenset({"parenthesized_expression", "non_null_expression"})
_OF_NUMBERS = frozenset({"toFixed", "toPrecision", "toExponential"})
_OF_PROMISES = frozenset({"then", "catch", "finally"})
_STRING_MEMBERS = """
length at charAt charCodeAt codePointAt concat endsWith includes indexOf isWellFormed lastIndexOf
localeCompare match matchAll normalize padEnd padStart repeat replace replaceAll search slice split startsWith
substr substring toLocaleLowerCase toLocaleUpperCase toLowerCase toUpperCase toWellFormed trim trimEnd
trimLeft trimRight trimStart anchor big bold fixed italics link small strike sub sup
"""
_OF_STRINGS = frozenset(_STRING_MEMBERS.split())
_ARRAY_MEMBERS = """
length at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat flatMap
forEach includes indexOf join keys lastIndexOf map pop push reduce reduceRight reverse shift slice some sort
splice toReversed toSorted toSpliced unshift values with
"""
_OF_ARRAYS = frozenset(_ARRAY_MEMBERS.split())
_ELEMENTS = frozenset({"at", "find", "findLast", "pop", "shift"})
"""Methods of an array that return one of its elements."""
_SAME = frozenset({"filter", "reverse", "slice", "sort", "toReversed", "toSorted"})
"""Methods of an array that return an array of the same type."""
_TAKING_ELEMENTS = frozenset(
    {"every", "filter", "find", "findIndex", "findLast", "flatMap", "forEach", "map", "some"}
)
"""Methods of an array whose callback takes an element first."""


class Results:
    """The types of one script's expressions."""

    def __init__(
        self, scopes: Scopes, calls: dict[Node, str], signatures: Signatures, definitions: Definitions
    ) -> None:
        self._scopes = scopes
        self._calls = calls
        self._signatures = signatures
        self._definitions = definitions
        self._types: dict[Node, Type] = {}

    def type_of(self, node: Node | None, depth: int = 0) -> Type:
        """Return the type of an expression."""
        if node is None or depth > _MAX_CHAIN:
            return UNKNOWN
        if node not in self._types:
            self._types[node] = UNKNOWN  # an expression that depends on itself
            self._types[node] = self._resolve(node, depth + 1)
        return self._types[node]

    def has_member(self, part: str, name: str) -> bool | None:
        """Return whether a type has a member; None if that is not known."""
        if part.endswith("[]"):
            return name in _OF_ARRAYS
        if part.startswith("Promise<"):
            return name in _OF_PROMISES
        simple = {"number": _OF_NUMBERS, "string": _OF_STRINGS, "boolean": frozenset[str]()}
        if part in simple:
            return name in simple[part]
        base, _, further = part.partition(" & ")
        if not self.is_interface(part):
            return None
        return name in self._definitions.members[base] or re.search(rf"\b{name}\b", further) is not None

    def is_interface(self, part: str) -> bool:
        """Return whether a type is an interface whose members are all known."""
        name = part.partition(" & ")[0]
        declaration = self._definitions.by_symbol.get(name)
        if declaration is None or name not in self._definitions.members:
            return False
        head = declaration.signature.partition("{")[0]
        # Any name may be a field of an interface with an index signature.
        is_open = re.search(r"^\s*\[\w+:", declaration.signature, re.MULTILINE) is not None
        return "interface " in head and "<" not in head and not is_open

    def fits(self, node: Node, kinds: Kinds, *, is_required: bool) -> bool:
        """Return whether the result of a call may be an argument; the game converts strings and numbers."""
        names = kinds.names
        if not names.isdisjoint({"any", "boolean", "object"}) or not (names or kinds.values):
            return True
        parts = self.type_of(node)
        if parts == {"void"}:
            return not is_required
        return not parts or not all(
            (part.endswith("[]") and "array" not in names)
            or part.startswith("Promise<")
            or self.is_interface(part)
            for part in parts
        )

    def _resolve(self, node: Node, depth: int) -> Type:
        if node.type in _WRAPPERS:
            return self.type_of(node.named[0] if node.named else None, depth)
        if node.type == "await_expression":
            awaited = self.type_of(node.named[0] if node.named else None, depth)
            inner = [_read(part.removeprefix("Promise<").removesuffix(">")) for part in awaited]
            return frozenset[str]().union(*inner) if all(inner) else UNKNOWN
        if node.type == "call_expression":
            return self._resolve_call(node, depth)
        if node.type == "identifier":
            binding = self._scopes.bindings.get(node)
            return UNKNOWN if binding is None else self._resolve_binding(binding, depth)
        if node.type == "member_expression":
            name = node.field("property")
            return self._enter(self.type_of(node.field("object"), depth), name.text if name else "")
        if node.type == "subscript_expression":
            index = node.field("index")
            is_number = index is not None and index.type == "number"
            return self._enter(self.type_of(node.field("object"), depth), ELEMENT) if is_number else UNKNOWN
        return UNKNOWN

    def _resolve_call(self, node: Node, depth: int) -> Type:
        if node in self._calls:
            returned = {overload.returns for overload in self._signatures.of(self._calls[node])}
            return _read(returned.pop()) if len(returned) == 1 else UNKNOWN
        called = node.field("function")
        method = called.field("property") if called is not None else None
        if called is None or method is None or called.type != "member_expression":
            return UNKNOWN
        owner = self.type_of(called.field("object"), depth)
        if not owner or not all(part.endswith("[]") for part in owner):
            return UNKNOWN
        if method.text in _ELEMENTS:
            return self._enter(owner, ELEMENT)
        return owner if method.text in _SAME else UNKNOWN

    def _resolve_binding(self, binding: Binding, depth: int) -> Type:
        if binding.is_foreign:
            return UNKNOWN
        if binding.parameter is not None:
            # `list.map((element) => …)`
            arguments = binding.function.parent if binding.function is not None else None
            call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
            called = call.field("function") if call is not None else None
            method = called.field("property") if called is not None else None
            is_element = binding.index == 0 and method is not None and method.text in _TAKING_ELEMENTS
            if called is None or not is_element or binding.parameter.type != "identifier":
                return UNKNOWN
            return self._enter(self.type_of(called.field("object"), depth), ELEMENT)
        if len(binding.values) != 1:
            return UNKNOWN
        value, key = binding.values[0]
        if value.parent is not None and value.parent.field("type") is not None:
            return UNKNOWN  # `const player: any = ns.getPlayer()` says that it has more
        whole = self.type_of(value, depth)
        return self._enter(whole, key) if key else whole

    def _enter(self, owner: Type, name: str) -> Type:
        """Return the type of a member or an element."""
        types: set[str] = set()
        for part in owner:
            if name == ELEMENT:
                inner = _read(part.removesuffix("[]")) if part.endswith("[]") else UNKNOWN
            elif self.is_interface(part) and name in self._definitions.members.get(part, ()):
                signature = self._definitions.members[part][name].signature
                inner = _read(signature.partition(":")[2]) if "(" not in signature else UNKNOWN
            else:
                inner = UNKNOWN
            if not inner:
                return UNKNOWN
            types |= inner
        return frozenset(types)


def _read(text: str) -> Type:
    """Read a type as the definitions write it; unknown unless every part is understood."""
    parts = [part.strip().strip("()") for part in _BETWEEN_PARTS.split(text.strip().rstrip(";"))]
    if not all(_PART.fullmatch(part) for part in parts):
        return UNKNOWN
    return frozenset(part for part in parts if part not in _NOTHING)
