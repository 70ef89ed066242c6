"""Scripts: find the API functions that a script uses, under whatever name it calls them.

Follows the object that the game passes to `main` through parameters (named `ns`, typed `NS`, documented in a
JSDoc, or called with it), variables, destructuring, `this.ns` and namespaces such as `ns.singularity`.
Anything uncertain is ignored: a false alarm costs more than a missed problem.

Each expression and each declaration is resolved once, so the work is linear in the script. `MAX_STEPS` bounds
it anyway; a script beyond it is not checked.
"""

from __future__ import annotations

import re

from msgspec import Struct

from .definitions import Definitions
from .parsing import Node, TooLarge, Tree, string_value
from .scopes import Binding, Scopes, list_pattern

_WRAPPERS = frozenset(
    {"parenthesized_expression", "as_expression", "non_null_expression", "satisfies_expression"}
)
# The repetition is bounded: a comment of "{import(" without end would otherwise take quadratic time.
_JSDOC = re.compile(r"@param\s{0,9}\{\s{0,9}(?:import\([^)\n]{0,200}\)\.)?NS\s{0,9}\}\s{0,9}\[?(\w+)")
_NS_TYPE = re.compile(r":\s*(?:import\([^)]*\)\.)?NS\s*(?:\|\s*(?:null|undefined))?\s*")
_MAX_TYPE = 200
"""Characters of a type annotation that can still be NS."""
_MAX_CHAIN = 200
"""Expressions followed in a row, each by recursion."""
MAX_STEPS = 5_000_000
"""Nodes visited for one script: about ten for each node of the longest script that is checked."""
_ACCESSING = frozenset({"member_expression", "subscript_expression", "object_pattern"})


class TooMuchWork(Exception):
    """The script needs more than `MAX_STEPS` or is too large; it is not checked."""


class ApiUse(Struct, frozen=True):
    """A place where a script accesses a member of the API."""

    parent: str
    """The namespace: "" is ns itself."""
    name: str
    node: Node
    """The member expression; in a pattern, the declared name."""
    start: int
    """Where the name is, in bytes."""
    has_default: bool = False
    """Whether a pattern gives a value for a missing member."""

    @property
    def path(self) -> str:
        """The member as a script writes it after `ns.`."""
        return f"{self.parent}.{self.name}".lstrip(".")


class Script:
    """One source, parsed."""

    def __init__(self, source: str, filename: str, definitions: Definitions) -> None:
        try:
            self.tree = Tree(source, filename)
        except TooLarge:
            raise TooMuchWork from None
        self.scopes = Scopes(self.tree)
        self.steps = len(self.tree.nodes) + self.scopes.steps
        self._namespaces = definitions.namespaces
        # Filled by `resolve`; None, while it is being resolved too, is "not certainly the API".
        self._nodes: dict[Node, str | None] = {}
        self._bindings: dict[Binding, str | None] = {}
        self._fields: dict[str, str | None] = {}

    def spend(self, steps: int = 1) -> None:
        """Count work; raise TooMuchWork beyond the limit."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise TooMuchWork

    def find_uses(self) -> list[ApiUse]:
        """Return every place where a member of the API is accessed, in order."""
        uses: list[ApiUse] = []
        for node in self.tree.nodes:
            if node.type == "object_pattern":
                parent = self.resolve(node)
                if parent is not None:
                    for name, key in list_pattern(node):
                        if key:
                            # `const { a = 1 } = ns`, so `a` may be missing.
                            has_default = name.parent is not None and "assignment" in name.parent.type
                            uses.append(ApiUse(parent, key, name, name.start, has_default))
            elif node.type in _ACCESSING:
                name_node = node.field("property") or node.field("index")
                member = property_of(node)
                parent = self.resolve(node.field("object")) if member else None
                if parent is not None and name_node is not None:
                    uses.append(ApiUse(parent, member, node, name_node.start))
        return uses

    def resolve(self, node: Node | None, depth: int = 0) -> str | None:
        """Return the namespace that an expression certainly is ("" is ns); None for everything else."""
        if node is None or depth > _MAX_CHAIN:
            return None
        if node in self._nodes:
            return self._nodes[node]
        self.spend()
        self._nodes[node] = None  # an expression that depends on itself (`a = b; b = a`) is uncertain
        resolved = self._nodes[node] = self._resolve(node, depth + 1)
        return resolved

    def _resolve(self, node: Node, depth: int) -> str | None:
        if node.type in _WRAPPERS:
            inner = node.named
            return self.resolve(inner[0] if inner else None, depth)
        if node.type == "object_pattern" and node.parent is not None:
            around = node.parent
            if around.type == "variable_declarator":  # const { stock } = ns
                return self.resolve(around.field("value"), depth)
            if around.type == "pair_pattern":  # const { stock: { getPrice } } = ns
                outer, key = self.resolve(around.parent, depth), around.field("key")
                return None if outer is None or key is None else self._enter(outer, key.text)
        if node.type in ("identifier", "object_pattern"):  # a pattern: the parameter that it takes apart
            binding = self.scopes.bindings.get(node)
            return None if binding is None else self._resolve_binding(binding, depth)
        if node.type in ("member_expression", "subscript_expression"):
            owner, name = node.field("object"), property_of(node)
            if owner is not None and owner.type == "this":
                return self._resolve_field(name, depth)
            parent = self.resolve(owner, depth)
            return None if parent is None or not name else self._enter(parent, name)
        return None

    def _resolve_binding(self, binding: Binding, depth: int) -> str | None:
        if binding not in self._bindings:
            self._bindings[binding] = None
            values: set[str | None] = set()
            if binding.is_foreign:
                values.add(None)
            elif binding.function is not None and binding.parameter is not None:
                is_ns = self._is_ns_parameter(binding.function, binding.index, binding.parameter, depth)
                values.add("" if is_ns else None)
            for value, key in binding.values:
                whole = self.resolve(value, depth)
                values.add(whole if whole is None or not key else self._enter(whole, key))
            # Different values in different branches: uncertain.
            self._bindings[binding] = values.pop() if len(values) == 1 else None
        return self._bindings[binding]

    def _resolve_field(self, name: str, depth: int) -> str | None:
        if name not in self._fields:
            self._fields[name] = None
            typed = self.scopes.field_types.get(name)
            if typed is not None and is_ns_type(typed):
                self._fields[name] = ""
            else:
                values = {self.resolve(value, depth) for value in self.scopes.fields.get(name, ())}
                self._fields[name] = values.pop() if len(values) == 1 else None
        return self._fields[name]

    def _enter(self, parent: str, name: str) -> str | None:
        path = f"{parent}.{name}".lstrip(".")
        return path if path in self._namespaces else None

    def _is_passed_ns(self, called: str, index: int, depth: int) -> bool:
        """Return whether no call in this file passes something else to a parameter named `ns`.

        An argument of the same name is believed, so that functions may call each other in circles.
        """
        passed = self.scopes.arguments.get(called, []) if called else []
        for argument in passed[index] if index < len(passed) else ():
            name = property_of(argument) if argument.type == "member_expression" else argument.text
            if name != "ns" and self.resolve(argument, depth) != "":
                return False
        return True

    def _is_ns_parameter(self, function: Node, index: int, parameter: Node, depth: int) -> bool:
        # A type decides, whatever the name. Without one: JSDoc, or the name `ns`, which callbacks of other
        # libraries use for other things.
        annotation = parameter.field("type")
        if annotation is not None:
            return is_ns_type(annotation)
        pattern = parameter.field("pattern") or parameter.field("left") or parameter
        name = pattern.text if pattern.type == "identifier" else ""
        called = name_of(function)
        if name and name in _documented(function):
            return True
        if name == "ns" and not _is_callback(function) and called not in self.scopes.callbacks:
            return self._is_passed_ns(called, index, depth)
        # The game calls `main` with ns as its first argument.
        if called == "main" and index == 0:
            return True
        passed = self.scopes.arguments.get(called, []) if called else []
        # Every call in this file has to pass ns; calls from other files are not known here.
        arguments = passed[index] if index < len(passed) else []
        return bool(arguments) and all(self.resolve(argument, depth) == "" for argument in arguments)


def name_of(function: Node) -> str:
    """Return the name by which the file calls a function; empty for methods and functions without one."""
    own_name, parent = function.field("name"), function.parent
    if own_name is not None:
        return own_name.text if function.type != "method_definition" else ""
    if parent is not None and parent.type == "variable_declarator":
        declared = parent.field("name")
        return declared.text if declared is not None and declared.type == "identifier" else ""
    return ""


def property_of(node: Node) -> str:
    """Return the name that a member or subscript expression accesses; empty if it is computed."""
    target = node.field("property")
    return target.text if target is not None else string_value(node.field("index")) or ""


def is_ns_type(annotation: Node) -> bool:
    """Return whether a type annotation is NS."""
    return annotation.end - annotation.start < _MAX_TYPE and _NS_TYPE.fullmatch(annotation.text) is not None


def _is_callback(function: Node) -> bool:
    """Return whether a function is passed to a method, which then decides its arguments."""
    arguments = function.parent
    call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
    called = call.field("function") if call is not None else None
    return called is not None and called.type == "member_expression"


def _documented(function: Node) -> list[str]:
    """Return the parameters that the JSDoc before a function types as NS."""
    node = function
    # Up to `export const f = (ns) => …`: the function, its declarator, the declaration, the export.
    for _ in range(4):
        parent = node.parent
        if parent is None:
            break
        before = node.previous
        if before is not None and before.type == "comment":
            return _JSDOC.findall(before.text)
        if parent.type in ("program", "statement_block", "class_body"):
            break
        node = parent
    return []
