"""Guards: the ways in which a script handles a missing member of the API.

Players write scripts for several versions of the game: `if (ns.x) ns.x()`, `"x" in ns`, `typeof ns.x`,
`ns.x?.()`, an early return, try and catch, or a helper such as `isV3(ns)`. A name that is tested anywhere in
a file counts as guarded in all of it, so that `if (!ns.x) return;` and a test in a helper work too. Code that
runs only if another member is missing (`ns.new ? ns.new() : ns.old()`) is for another version of the game,
whether the test is in place, in a variable or an early return.
"""

from __future__ import annotations

import re

from .parsing import FUNCTIONS, Node, string_value
from .scopes import Binding
from .scripts import Script, name_of, property_of

_TESTS = frozenset({"if_statement", "while_statement", "do_statement", "ternary_expression"})
_OPERATORS = frozenset({"&&", "||", "??", "===", "!==", "==", "!=", "in", "instanceof"})
_ACCESSING = frozenset({"member_expression", "subscript_expression", "call_expression"})
_PASSING = frozenset({"parenthesized_expression", "ternary_expression", "binary_expression"})
"""Expressions whose value may be that of an operand."""
_MEMBERS = frozenset({"member_expression", "subscript_expression"})
_VALUES = frozenset({"args", "pid"})
"""Members that every version has; testing them is not a version check."""
_LISTING = frozenset({"keys", "getOwnPropertyNames", "has", "hasOwn", "hasOwnProperty"})
_LEAVING = frozenset({"return_statement", "throw_statement", "continue_statement", "break_statement"})
_MAX_CONDITION = 300
"""Characters of a condition that is searched for a version; conditions nest, so a limit keeps this linear."""
_MAX_CHAIN = 6
"""Accesses of one expression, for the same reason."""
_VERSION = re.compile(r"version", re.IGNORECASE)
_FEATURE = re.compile(r"version|\bin ns\b|\btypeof\b|\bundefined\b", re.IGNORECASE)


class Guards:
    """The guarded names and places of one script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._names: set[str] = set()
        self._variables: set[Binding] = set()
        """Variables that are tested somewhere."""
        self.protected: set[Node] = set()
        """Nodes inside of try with catch, `if (false)` and tests of the version."""
        self._helpers = {name_of(node): node for node in script.tree.nodes if node.type in FUNCTIONS}
        self._left_early: set[Node] = set()
        """Blocks of which the rest runs only if a member is missing: `if (ns.new) return; ns.old();`."""
        for node in script.tree.nodes:
            script.spend()
            parent = node.parent
            if parent is not None and (parent in self.protected or self._protects(parent, node)):
                self.protected.add(node)
            if node.type == "if_statement" and parent is not None and self._leaves_early(node):
                self._left_early.add(parent)
            if node.type in _MEMBERS:
                if _is_tested(node):
                    self._names.add(property_of(node))
            elif node.type == "identifier":
                binding = script.scopes.bindings.get(node)
                if binding is not None and _is_tested(node):
                    self._variables.add(binding)
            elif node.type == "string" and (parent is None or parent.type != "subscript_expression"):
                self._names.add(string_value(node) or "")

    def covers(self, node: Node, name: str) -> bool:
        """Return whether the use of a missing name is guarded; asking for the version always is."""
        is_known = name in self._names or node in self.protected or _VERSION.search(name) is not None
        return is_known or self._is_kept_and_tested(node)

    def _is_kept_and_tested(self, node: Node) -> bool:
        """Return whether a member is kept in a variable that is tested: `const buy = ns.buy; if (buy) …`."""
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
            return self._is_switch(condition) or self._is_for_others(
                condition, is_taken=parent.field("consequence") is node
            )
        if parent.type == "switch_statement" and parent.field("body") is node:
            return self._asks(parent.field("value"))
        if parent.type == "binary_expression" and parent.field("right") is node:
            # `ns.new?.() ?? ns.old()`, `ns.new || ns.old()`, `!ns.new && ns.old()`: the other game's name.
            operator, left = parent.field("operator"), parent.field("left")
            if operator is None or left is None:
                return False
            if operator.type in ("??", "||") and self._asks_softly(left):
                return True
            is_logical = operator.type in ("??", "||", "&&")
            return is_logical and self._is_for_others(left, is_taken=operator.type == "&&")
        return parent in self._left_early

    def _leaves_early(self, node: Node) -> bool:
        condition, taken = node.field("condition"), node.field("consequence")
        last = taken.named[-1:] if taken is not None and taken.type == "statement_block" else [taken]
        leaves = any(statement is not None and statement.type in _LEAVING for statement in last)
        return (
            leaves
            and condition is not None
            and (self._is_for_others(condition, is_taken=False) or self._asks_helper(condition))
        )

    def _asks_helper(self, condition: Node) -> bool:
        """Return whether a condition calls a function of the script that looks for members of the API."""
        node = condition
        while node.type in ("parenthesized_expression", "unary_expression") and node.named:
            node = node.named[0]
        called = node.field("function") if node.type == "call_expression" else None
        if called is None or called.type != "identifier":
            return False
        helper = self._helpers.get(called.text)
        return _VERSION.search(called.text) is not None or (
            helper is not None
            and helper.end - helper.start <= _MAX_CONDITION
            and _FEATURE.search(helper.text) is not None
        )

    def _is_for_others(self, condition: Node, *, is_taken: bool) -> bool:
        """Return whether a branch of a condition may be for another version of the game.

        For `ns.x` and `!ns.x` that is the branch without x; for other tests, both branches.
        """
        negated, is_plain = False, True
        node = condition
        while node.type in ("parenthesized_expression", "unary_expression") and node.named:
            negated ^= node.has_token("!")
            is_plain = is_plain and not node.has_token("typeof")
            node = node.named[0]
        if node.type in _MEMBERS and is_plain:
            return is_taken is negated and self._script.resolve(node.field("object")) is not None
        return self._asks(condition)

    def _asks(self, node: Node | None, depth: int = 0) -> bool:
        """Return whether an expression tests if the API has some member."""
        if node is None or depth > _MAX_CHAIN or node.end - node.start > _MAX_CONDITION:
            return False
        if node.type in ("parenthesized_expression", "unary_expression"):
            return any(self._asks(part, depth + 1) for part in node.named)
        if node.type in _MEMBERS:
            return self._script.resolve(node.field("object")) is not None and property_of(node) not in _VALUES
        if node.type == "binary_expression":
            left, right, operator = node.field("left"), node.field("right"), node.field("operator")
            if operator is not None and operator.type == "in":
                return self._script.resolve(right) is not None
            return self._asks(left, depth + 1) or self._asks(right, depth + 1)
        if node.type == "call_expression":  # Boolean(ns.x), Object.keys(ns).includes("x")
            called, arguments = node.field("function"), node.field("arguments")
            owner = called.field("object") if called is not None else None
            if called is None or arguments is None:
                return False
            if property_of(called) in _LISTING:
                return any(self._script.resolve(part) is not None for part in (owner, *arguments.named[:2]))
            if owner is not None:
                return owner.type == "call_expression" and self._asks(owner, depth + 1)
            return called.text == "Boolean" and any(
                self._asks(argument, depth + 1) for argument in arguments.named
            )
        binding = self._script.scopes.bindings.get(node) if node.type == "identifier" else None
        if binding is None or len(binding.values) != 1:
            return False
        value, key = binding.values[0]
        return self._script.resolve(value) is not None if key else self._asks(value, depth + 1)

    def _asks_softly(self, node: Node | None) -> bool:
        """Return whether an expression accesses the API with `?.`."""
        is_optional = False
        for _ in range(_MAX_CHAIN):
            if node is None or node.type not in _ACCESSING:
                break
            is_optional = is_optional or node.has_token("optional_chain")
            node = node.field("function") or node.field("object")
        return is_optional and node is not None and self._script.resolve(node) == ""

    def _is_switch(self, condition: Node) -> bool:
        """Return whether a condition is `false` (a trick to charge RAM), or tests the game's version."""
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
        if any(operand is not None and self._is_version(operand) for operand in operands):
            return True
        if node.type == "identifier":
            node = self._value_of(node) or node
        arguments = node.field("arguments") if node.type == "call_expression" else None
        return arguments is not None and any(
            self._script.resolve(argument) == "" for argument in arguments.named[:3]
        )

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
