"""Scripts: which functions of the API a script uses, under whatever name it has them.

Follows the one object that the game hands to `main`: through parameters (named `ns`, typed `NS`, told by a
JSDoc, or called with it), variables, destructuring, `this.ns` and namespaces such as `ns.singularity`. What
cannot be followed for certain is left alone: a false alarm costs more than a missed one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct, field
from tree_sitter import Node

from . import parsing
from .parsing import FUNCTIONS, place_of, text_of, walk

if TYPE_CHECKING:
    from .definitions import Definitions

_SCOPES = FUNCTIONS | frozenset(
    {"program", "statement_block", "for_statement", "for_in_statement", "catch_clause", "class_body"}
)
_WRAPPERS = frozenset(
    {"parenthesized_expression", "as_expression", "non_null_expression", "satisfies_expression"}
)
_COMPARING = frozenset({"&&", "||", "??", "===", "!==", "==", "!=", "in"})
_NOTHING = frozenset({"null", "undefined"})
_JSDOC = re.compile(r"@param\s*\{\s*(?:import\([^)]*\)\.)?NS\s*\}\s*\[?(\w+)")
_NS_TYPE = re.compile(r":\s*(?:import\([^)]*\)\.)?NS\s*(?:\|\s*(?:null|undefined))?\s*")
_MOST_STEPS = 30
"""Variables that are followed in a row; a script that goes in circles must end too."""


class ApiUse(Struct, frozen=True):
    """A place at which a script takes something from the API."""

    parent: str
    """The namespace: "" is ns itself."""
    name: str
    line: int
    column: int
    is_guarded: bool = False
    """Whether the script looks whether it is there, before it uses it."""

    @property
    def path(self) -> str:
        """The name as a script writes it behind `ns.`."""
        return f"{self.parent}.{self.name}".lstrip(".")


class _Binding(Struct):
    """What a name stands for: values that are given to it, or a parameter of a function."""

    values: list[tuple[Node, str]] = field(default_factory=list)
    """Expressions, each with the property that is taken out of it ("" for the whole)."""
    parameter: tuple[Node, int, Node] | None = None
    is_foreign: bool = False


class Script:
    """One source, parsed."""

    def __init__(self, source: str, filename: str, definitions: Definitions) -> None:
        self.root = parsing.parse(source.encode("utf-8", "replace"), filename)
        self._namespaces = definitions.namespaces
        self._scopes: dict[int, dict[str, _Binding]] = {}
        self._calls: dict[str, list[list[Node]]] = {}
        self._fields: dict[str, list[Node]] = {}
        self._typed_fields: set[str] = set()
        self._collect()

    def find_uses(self) -> list[ApiUse]:
        """Return every place at which something is taken from the API, in order."""
        uses: list[ApiUse] = []
        for node in walk(self.root):
            if node.type in ("member_expression", "subscript_expression"):
                uses += self._use_of_member(node)
            elif node.type == "object_pattern":
                uses += self._uses_of_pattern(node)
        return uses

    # --- collecting names ----------------------------------------------------------------------------------

    def _collect(self) -> None:
        collectors = {
            "variable_declarator": self._collect_variable,
            "class_declaration": self._bind_foreign,
            "import_specifier": self._bind_foreign,
            "namespace_import": self._bind_foreign,
            "import_clause": self._bind_foreign,
            "catch_clause": self._collect_block,
            "for_in_statement": self._collect_block,
            "call_expression": self._collect_call,
            "public_field_definition": self._collect_field,
            **dict.fromkeys(FUNCTIONS, self._collect_function),
        }
        assignments: list[Node] = []
        for node in walk(self.root):
            collect = collectors.get(node.type)
            if collect is not None:
                collect(node)
            elif node.type in ("assignment_expression", "augmented_assignment_expression"):
                assignments.append(node)
        for node in assignments:  # only now is every name declared
            self._collect_assignment(node)

    def _collect_variable(self, node: Node) -> None:
        self._bind_pattern(node.child_by_field_name("name"), node.child_by_field_name("value"), node)

    def _collect_block(self, node: Node) -> None:
        name = node.child_by_field_name("parameter") or node.child_by_field_name("left")
        self._bind_names(name, node)

    def _collect_function(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None and node.type.endswith("_declaration"):
            self._declare(name, _Binding(is_foreign=True), node.parent or node)
        single = node.child_by_field_name("parameter")
        parameters = node.child_by_field_name("parameters")
        found = [single] if single is not None else list(parameters.named_children if parameters else ())
        for index, parameter in enumerate(one for one in found if one.type != "comment"):
            self._bind_parameter(node, index, parameter)

    def _bind_parameter(self, function: Node, index: int, parameter: Node) -> None:
        named = parameter.child_by_field_name("pattern") or parameter.child_by_field_name("left")
        pattern = parameter if named is None else named
        if pattern.type == "identifier":
            self._declare(pattern, _Binding(parameter=(function, index, parameter)), function)
            if parameter.child_by_field_name("accessibility") or text_of(parameter).startswith(
                ("private ", "public ", "protected ", "readonly ")
            ):
                self._fields.setdefault(text_of(pattern), []).append(pattern)
        elif pattern.type == "object_pattern":
            for name, key in _list_pattern(pattern):
                value = [(pattern, key)] if key else []
                self._declare(name, _Binding(values=value, is_foreign=not key), function)
        else:
            self._bind_names(pattern, function)

    def _bind_pattern(self, pattern: Node | None, value: Node | None, node: Node) -> None:
        if pattern is None:
            return
        if pattern.type == "identifier":
            values = [] if value is None or value.type in _NOTHING else [(value, "")]
            self._declare(pattern, _Binding(values=values), node)
        elif pattern.type == "object_pattern" and value is not None:
            for name, key in _list_pattern(pattern):
                self._declare(name, _Binding(values=[(value, key)] if key else [], is_foreign=not key), node)
        else:
            self._bind_names(pattern, node)

    def _bind_foreign(self, node: Node) -> None:
        for name in node.named_children:
            if name.type in ("identifier", "type_identifier"):
                self._declare(name, _Binding(is_foreign=True), node)

    def _bind_names(self, pattern: Node | None, scope: Node) -> None:
        for name in walk(pattern) if pattern is not None else ():
            if name.type in ("identifier", "shorthand_property_identifier_pattern"):
                self._declare(name, _Binding(is_foreign=True), scope)

    def _declare(self, name: Node, binding: _Binding, at: Node) -> None:
        scope = _scope_of(at)
        names = self._scopes.setdefault(scope.id, {})
        known = names.get(text_of(name))
        if known is not None:  # declared twice: what it stands for is not certain
            binding = _Binding(is_foreign=True)
        names[text_of(name)] = binding

    def _collect_call(self, node: Node) -> None:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is not None and function.type == "identifier" and arguments is not None:
            self._calls.setdefault(text_of(function), []).append(arguments.named_children)

    def _collect_field(self, node: Node) -> None:
        name, annotation = node.child_by_field_name("name"), node.child_by_field_name("type")
        if name is not None and annotation is not None and _NS_TYPE.fullmatch(text_of(annotation)):
            self._typed_fields.add(text_of(name))

    def _collect_assignment(self, node: Node) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        if left.type == "identifier":
            binding = self._find_binding(left)
            if binding is None or right.type in _NOTHING:
                return
            if node.type == "augmented_assignment_expression" or binding.parameter is not None:
                binding.is_foreign = True
            else:
                binding.values.append((right, ""))
        elif left.type == "member_expression" and _is_this(left):
            self._fields.setdefault(_property_of(left), []).append(right)

    def _find_binding(self, name: Node) -> _Binding | None:
        wanted, node = text_of(name), name.parent
        while node is not None:
            found = self._scopes.get(node.id, {}).get(wanted)
            if found is not None:
                return found
            node = node.parent
        return None

    # --- following the API ---------------------------------------------------------------------------------

    def resolve(self, node: Node | None, steps: int = 0) -> str | None:
        """Return the namespace that an expression certainly is; None for everything else."""
        if node is None or steps > _MOST_STEPS:
            return None
        if node.type in _WRAPPERS:
            return self.resolve(node.named_children[0] if node.named_children else None, steps + 1)
        if node.type == "identifier":
            return self._resolve_name(node, steps)
        if node.type in ("member_expression", "subscript_expression"):
            return self._resolve_member(node, steps)
        if node.type == "object_pattern":  # a parameter that is taken apart
            return self._resolve_pattern(node, steps)
        return None

    def _resolve_name(self, node: Node, steps: int) -> str | None:
        binding = self._find_binding(node)
        if binding is None or binding.is_foreign:
            return None
        if binding.parameter is not None:
            return "" if self._is_ns_parameter(*binding.parameter, steps) else None
        found = {self._resolve_value(value, key, steps) for value, key in binding.values}
        return found.pop() if len(found) == 1 else None

    def _resolve_value(self, value: Node, key: str, steps: int) -> str | None:
        whole = self.resolve(value, steps + 1)
        if whole is None or not key:
            return whole
        return self._enter(whole, key)

    def _enter(self, parent: str, name: str) -> str | None:
        path = f"{parent}.{name}".lstrip(".")
        return path if path in self._namespaces else None

    def _resolve_member(self, node: Node, steps: int) -> str | None:
        name = _property_of(node)
        if node.type == "member_expression" and _is_this(node):
            if name in self._typed_fields:
                return ""
            found = {self.resolve(value, steps + 1) for value in self._fields.get(name, ())}
            return found.pop() if len(found) == 1 else None
        parent = self.resolve(node.child_by_field_name("object"), steps + 1)
        return None if parent is None or not name else self._enter(parent, name)

    def _resolve_pattern(self, node: Node, steps: int) -> str | None:
        """Return what a parameter is that is taken apart where it is declared."""
        parameter, owner = node, node.parent
        if owner is not None and owner.type != "formal_parameters":  # TypeScript has a node in between
            parameter, owner = owner, owner.parent
        function = owner.parent if owner is not None else None
        if owner is None or function is None or owner.type != "formal_parameters":
            return None
        index = [one.id for one in owner.named_children if one.type != "comment"].index(parameter.id)
        return "" if self._is_ns_parameter(function, index, parameter, steps) else None

    def _is_ns_parameter(self, function: Node, index: int, parameter: Node, steps: int) -> bool:
        annotation = parameter.child_by_field_name("type")
        if annotation is not None:
            return _NS_TYPE.fullmatch(text_of(annotation)) is not None
        name = text_of(parameter.child_by_field_name("pattern") or parameter).partition("=")[0].strip()
        if (name == "ns" and not _is_callback(function)) or name in _documented(function):
            return True
        called = _name_of(function)
        if called == "main" and index == 0:
            return True
        calls = self._calls.get(called, []) if called else []
        given = [arguments[index] for arguments in calls if len(arguments) > index]
        return bool(given) and all(self.resolve(one, steps + 1) == "" for one in given)

    # --- what is taken from it -----------------------------------------------------------------------------

    def _use_of_member(self, node: Node) -> list[ApiUse]:
        name = _property_of(node)
        target = node.child_by_field_name("property") or node.child_by_field_name("index")
        parent = self.resolve(node.child_by_field_name("object"))
        if parent is None or not name or target is None:
            return []
        return [ApiUse(parent, name, *place_of(target), _is_guarded(node))]

    def _uses_of_pattern(self, pattern: Node) -> list[ApiUse]:
        declarator = pattern.parent
        value = declarator.child_by_field_name("value") if declarator is not None else None
        parent = self.resolve(value if value is not None else pattern)
        if parent is None:
            return []
        return [
            ApiUse(parent, key, *place_of(name), name.parent is not None and "assignment" in name.parent.type)
            for name, key in _list_pattern(pattern)
            if key
        ]


def _scope_of(node: Node) -> Node:
    while node.type not in _SCOPES and node.parent is not None:
        node = node.parent
    return node


def _list_pattern(pattern: Node) -> list[tuple[Node, str]]:
    """Return the names that an object pattern makes, each with the property it takes ("" if unknown)."""
    found: list[tuple[Node, str]] = []
    for child in pattern.named_children:
        if child.type == "shorthand_property_identifier_pattern":
            found.append((child, text_of(child)))
        elif child.type == "object_assignment_pattern":
            name = child.child_by_field_name("left")
            if name is not None:
                found.append((name, text_of(name)))
        elif child.type == "pair_pattern":
            key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
            if key is not None and value is not None and value.type == "identifier":
                found.append((value, text_of(key)))
        else:
            found += [(one, "") for one in walk(child) if one.type == "identifier"]
    return found


def _property_of(node: Node) -> str:
    target = node.child_by_field_name("property")
    if target is not None:
        return text_of(target)
    index = node.child_by_field_name("index")
    return (parsing.string_value(index) or "") if index is not None else ""


def _is_this(node: Node) -> bool:
    inner = node.child_by_field_name("object")
    return inner is not None and inner.type == "this"


def _name_of(function: Node) -> str:
    name = function.child_by_field_name("name")
    if name is not None:
        return text_of(name) if function.type != "method_definition" else ""
    parent = function.parent
    if parent is not None and parent.type == "variable_declarator":
        declared = parent.child_by_field_name("name")
        return text_of(declared) if declared is not None else ""
    return ""


def _is_callback(function: Node) -> bool:
    """Tell whether a function is handed to a method: what it is called with is that method's choice."""
    arguments = function.parent
    call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
    called = call.child_by_field_name("function") if call is not None else None
    return called is not None and called.type == "member_expression"


def _documented(function: Node) -> list[str]:
    """Return the parameters that the comment before a function calls an NS."""
    node: Node | None = function
    while node is not None and node.type not in ("program", "statement_block", "class_body"):
        before = node.prev_named_sibling
        if before is not None and before.type == "comment":
            return _JSDOC.findall(text_of(before))
        node = node.parent
    return []


def _is_guarded(node: Node) -> bool:
    """Tell whether a script asks whether something is there: then it may be missing."""
    parent = node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if any(child.type == "optional_chain" for child in parent.children):
        return True
    if parent.type == "binary_expression":
        operator = parent.child_by_field_name("operator")
        return operator is not None and text_of(operator) in _COMPARING
    part = {"ternary_expression": "condition", "assignment_expression": "left"}.get(parent.type)
    if part is not None:
        return parent.child_by_field_name(part) == node
    return parent.type in ("unary_expression", "if_statement", "while_statement")
