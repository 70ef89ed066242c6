"""Guards: the ways in which a script says that a member of the API may be missing.

Players write scripts for several versions of the game: `if (ns.x) ns.x()`, `"x" in ns`, `typeof ns.x`,
`ns.x?.()`, an early return, try and catch, or a helper such as `isV3(ns)`. A name that is tested anywhere in
a file counts as guarded in all of it, so that `if (!ns.x) return;` and a test in a helper work too. What runs
only if another member is missing (`ns.new ? ns.new() : ns.old()`) is for another version of the game.
"""

from __future__ import annotations

import re

from .parsing import Node, string_value
from .scopes import Binding
from .scripts import Script, property_of

_TESTS = frozenset({"if_statement", "while_statement", "do_statement", "ternary_expression"})
_OPERATORS = frozenset({"&&", "||", "??", "===", "!==", "==", "!=", "in", "instanceof", "<", ">", "<=", ">="})
_ACCESSING = frozenset({"member_expression", "subscript_expression", "call_expression"})
_PASSING = frozenset({"parenthesized_expression", "ternary_expression", "binary_expression"})
"""Expressions whose value may be that of a part of them."""
_MAX_CONDITION = 300
"""Characters of a condition that is searched for a version; conditions nest, so a limit keeps this linear."""
_MAX_CHAIN = 6
"""Accesses of one expression, for the same reason."""
_VERSION = re.compile(r"version", re.IGNORECASE)


class Guards:
    """The guarded names and places of one script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._names: set[str] = set()
        self._variables: set[Binding] = set()
        """Variables that are tested somewhere."""
        self.protected: set[Node] = set()
        """Nodes inside of try with catch, `if (false)` and tests of the version."""
        for node in script.tree.nodes:
            script.spend()
            parent = node.parent
            if parent is not None and (parent in self.protected or self._protects(parent, node)):
                self.protected.add(node)
            if node.type in ("member_expression", "subscript_expression"):
                if _is_tested(node):
                    self._names.add(property_of(node))
            elif node.type == "identifier":
                binding = script.scopes.bindings.get(node)
                if binding is not None and _is_tested(node):
                    self._variables.add(binding)
            elif node.type == "string" and (parent is None or parent.type != "subscript_expression"):
                self._names.add(string_value(node) or "")

    def covers(self, node: Node, name: str) -> bool:
        """Return whether a script may use a name that does not exist here."""
        return name in self._names or node in self.protected or self._is_kept_and_tested(node)

    def _is_kept_and_tested(self, node: Node) -> bool:
        """Return whether a member goes into a variable that is tested: `const buy = ns.buy; if (buy) …`."""
        around = node.parent
        for _ in range(_MAX_CHAIN):
            if around is None or around.type not in _PASSING:
                break
            around = around.parent
        if around is None or around.type != "variable_declarator":
            return False
        name = around.field("name")
        binding = self._script.scopes.bindings.get(name) if name is not None else None
        return binding in self._variables

    def _protects(self, parent: Node, node: Node) -> bool:
        if parent.type == "try_statement":
            # The handler is often for the other version: `try { ns.old(); } catch { ns.new(); }`.
            return parent.field("handler") is not None and parent.field("finalizer") is not node
        if parent.type in ("if_statement", "ternary_expression"):
            condition = parent.field("condition")
            if condition is None or condition is node:
                return False
            return self._is_switch(condition) or self._is_otherwise(parent, condition, node)
        if parent.type == "binary_expression" and parent.field("right") is node:
            # `ns.new?.() ?? ns.old()`: the other game's name.
            operator, left = parent.field("operator"), parent.field("left")
            is_alternative = operator is not None and operator.type in ("??", "||") and left is not None
            return is_alternative and self._asks_softly(left)
        return False

    def _is_otherwise(self, parent: Node, condition: Node, branch: Node) -> bool:
        """Return whether a branch is taken if a member of the API is missing: that is for another game."""
        negated = False
        node = condition
        while node.type in ("parenthesized_expression", "unary_expression") and node.named:
            negated ^= node.type == "unary_expression" and node.text.startswith("!")
            node = node.named[0]
        taken = parent.field("consequence" if negated else "alternative")
        is_member = node.type in ("member_expression", "subscript_expression")
        return taken is branch and is_member and self._script.resolve(node.field("object")) is not None

    def _asks_softly(self, node: Node | None) -> bool:
        """Return whether an expression calls or reads the API with `?.`."""
        is_optional = False
        for _ in range(_MAX_CHAIN):
            if node is None or node.type not in _ACCESSING:
                break
            is_optional = is_optional or node.has_token("optional_chain")
            node = node.field("function") or node.field("object")
        return is_optional and node is not None and self._script.resolve(node) == ""

    def _is_switch(self, condition: Node) -> bool:
        """Return whether a condition is `false` (players charge RAM so), or asks for the game's version."""
        if condition.end - condition.start > _MAX_CONDITION:
            return False
        node = condition
        while (
            node.type in ("parenthesized_expression", "unary_expression", "await_expression") and node.named
        ):
            node = node.named[0]
        if node.type == "false" or _VERSION.search(condition.text):
            return True
        operands = [node.field("left"), node.field("right")] if node.type == "binary_expression" else [node]
        if any(one is not None and self._is_version(one) for one in operands):
            return True
        if node.type == "identifier":
            node = self._value_of(node) or node
        arguments = node.field("arguments") if node.type == "call_expression" else None
        return arguments is not None and any(self._script.resolve(one) == "" for one in arguments.named[:3])

    def _is_version(self, node: Node) -> bool:
        """Return whether a variable was computed from the game's version."""
        value = self._value_of(node)
        is_short = value is not None and value.end - value.start <= _MAX_CONDITION
        return is_short and value is not None and _VERSION.search(value.text) is not None

    def _value_of(self, node: Node) -> Node | None:
        binding = self._script.scopes.bindings.get(node)
        values = binding.values[:1] if binding is not None else []
        return values[0][0] if values and not values[0][1] else None


def _is_tested(node: Node) -> bool:
    """Return whether a member expression is tested or assigned, not used."""
    parent = node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type in _ACCESSING and parent.has_token("optional_chain"):
        return parent.field("object") is node or parent.field("function") is node
    if parent.type == "binary_expression":
        operator = parent.field("operator")
        return operator is not None and operator.type in _OPERATORS
    if parent.type in _TESTS:
        return parent.field("condition") is node
    if parent.type in ("assignment_expression", "augmented_assignment_expression"):
        return parent.field("left") is node
    return parent.type == "unary_expression"
