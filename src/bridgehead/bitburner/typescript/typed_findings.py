"""Typed findings: which of TypeScript's diagnostics are worth showing, and what they mean in the game.

The game strips types and never checks them, so most of what TypeScript says does not matter. Only errors that
fail at run time or read as undefined are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..netscript.checking import UNDOCUMENTED, Finding, Subject
from ..netscript.parsing import Node
from .type_checker import Diagnostic

_SYNTAX = frozenset({1002, 1003, 1005, 1109, 1127, 1128, 1134, 1136, 1137, 1160, 1161, 17002, 17008})
_UNDECLARED = frozenset({2304, 2552})
_PROPERTY = frozenset({2339, 2551})
_TOO_FEW = frozenset({2554, 2555})
_ARGUMENT = frozenset({2345, 2769})
_NOT_CALLABLE = 2349
_CONSTANT = 2588
_QUOTED = re.compile(r"'([^']*)'")
_COUNTS = re.compile(r"Expected (?:at least )?(\d+)(?:-\d+)? arguments?, but got (\d+)")
_ASSIGNED = re.compile(r"Argument of type '(.*)' is not assignable to parameter of type '(.*)'")
_HINT = re.compile(r"Did you mean '([^']*)'")
_READ = frozenset({"identifier", "shorthand_property_identifier"})


def find_typed(subject: Subject, diagnostics: list[Diagnostic]) -> Iterator[Finding]:
    """Yield the relevant problems behind the diagnostics; a repeated one is reported once."""
    told: set[tuple[str, str]] = set()
    for finding in _interpret(subject, diagnostics):
        if (finding.code, finding.message) not in told:
            told.add((finding.code, finding.message))
            yield finding


def _interpret(subject: Subject, diagnostics: list[Diagnostic]) -> Iterator[Finding]:
    uses = {use.start for use in subject.uses}
    leaves = {node.start: node for node in subject.nodes if not node.children}
    calls = dict(subject.calls)
    for diagnostic in diagnostics:
        node = leaves.get(diagnostic.start)
        if node is None or node.type == "comment":
            continue  # in a comment: the game ignores JSDoc
        if diagnostic.code in _SYNTAX:
            yield Finding("syntax_error", f"Syntax error: {diagnostic.message}", diagnostic.start, "start")
        elif diagnostic.code in _UNDECLARED:
            yield from _undeclared(subject, diagnostic, node)
        elif (
            diagnostic.code in _PROPERTY and diagnostic.start not in uses
        ):  # already covered by our own rules
            yield from _unknown_property(subject, diagnostic, node, calls)
        elif diagnostic.code in _TOO_FEW:
            yield from _too_few(diagnostic, node, calls)
        elif diagnostic.code in _ARGUMENT:
            yield from _wrong_argument(subject, diagnostic, node, calls)
        elif diagnostic.code == _CONSTANT and not subject.guards.covers(node, node.text):
            yield Finding(
                "assigned_constant", f"{node.text} is a const and cannot be assigned.", diagnostic.start
            )
        elif diagnostic.code == _NOT_CALLABLE:
            called = _expression(node, diagnostic)
            if called in calls or (called is not None and called.parent in calls):
                yield Finding("not_a_function", "What this call returns is not a function.", diagnostic.start)


def _undeclared(subject: Subject, diagnostic: Diagnostic, node: Node) -> Iterator[Finding]:
    name = node.text
    is_tested = re.search(rf"\btypeof\s+{re.escape(name)}\b", subject.source) is not None
    if node.type in _READ and not is_tested and not subject.guards.covers(node, name):
        yield Finding("undeclared", f"{name} is not defined.{_hint(diagnostic)}", diagnostic.start)


def _unknown_property(
    subject: Subject, diagnostic: Diagnostic, node: Node, calls: dict[Node, str]
) -> Iterator[Finding]:
    quoted = _QUOTED.findall(diagnostic.message)
    if len(quoted) < 2 or node.text in UNDOCUMENTED or subject.guards.covers(node, node.text):  # noqa: PLR2004
        return
    members = subject.definitions.members
    types = [part.strip() for part in quoted[1].removeprefix("typeof ").split("|")]
    is_declared = all(part in members for part in types)
    if is_declared and any(node.text in members[part] for part in types):
        return
    if not is_declared and not _comes_from_call(subject, node, calls):
        return
    expression = node.parent
    call = expression.parent if expression is not None else None
    is_called = call is not None and call.type == "call_expression" and call.field("function") is expression
    if any(part in subject.definitions.namespaces.values() for part in types):
        yield Finding(
            "unknown_api", f"{node.text} does not exist in {quoted[1]}.{_hint(diagnostic)}", diagnostic.start
        )
    else:
        effect = "so calling it fails" if is_called else "so this is undefined"
        message = f"{quoted[1]} has no {node.text}, {effect}.{_hint(diagnostic)}"
        yield Finding("unknown_property", message, diagnostic.start, "line" if is_called else "maybe")


def _comes_from_call(subject: Subject, node: Node, calls: dict[Node, str]) -> bool:
    """Return whether the object of a member expression is the result of an API call."""
    expression = node.parent
    value = expression.field("object") if expression is not None else None
    while value is not None and value.type in ("parenthesized_expression", "await_expression"):
        value = value.named[0] if value.named else None
    if value is not None and value.type == "identifier":
        binding = subject.script.scopes.bindings.get(value)
        if binding is None or binding.is_foreign or len(binding.values) != 1 or binding.values[0][1]:
            return False
        value = binding.values[0][0]
        if value.type == "await_expression":
            value = value.named[0] if value.named else None
    return value in calls


def _too_few(diagnostic: Diagnostic, node: Node, calls: dict[Node, str]) -> Iterator[Finding]:
    counts = _COUNTS.search(diagnostic.message)
    call: Node | None = node
    while call is not None and call.type != "call_expression":
        call = call.parent
    if counts is not None and call in calls and int(counts[2]) < int(counts[1]):
        message = f"ns.{calls[call]} needs {counts[1]} arguments, got {counts[2]}."
        yield Finding("too_few_arguments", message, diagnostic.start)


def _wrong_argument(
    subject: Subject, diagnostic: Diagnostic, node: Node, calls: dict[Node, str]
) -> Iterator[Finding]:
    assigned = _ASSIGNED.search(diagnostic.message)
    argument = _expression(node, diagnostic)
    call = argument.parent.parent if argument is not None and argument.parent is not None else None
    if assigned is None or call not in calls or call in subject.guards.protected:
        return
    passed, expected = assigned[1], assigned[2]
    # The game turns numbers into strings and numeric strings into numbers; only other kinds fail.
    is_object = passed.endswith("[]") or passed.startswith(("Promise<", "{")) or "=>" in passed
    is_object |= passed in subject.definitions.members or passed in ("boolean", "true", "false")
    if is_object and "|" not in passed and expected in ("string", "number"):
        yield Finding(
            "wrong_argument", f"ns.{calls[call]} takes a {expected} here, not {passed}.", diagnostic.start
        )


def _expression(node: Node, diagnostic: Diagnostic) -> Node | None:
    """Return the expression that a diagnostic spans: the largest node that begins and ends there."""
    expression: Node | None = node
    while expression is not None and expression.end < diagnostic.end:
        expression = expression.parent
    if expression is None or expression.start != diagnostic.start or expression.end != diagnostic.end:
        return None
    while expression.parent is not None and (expression.parent.start, expression.parent.end) == (
        diagnostic.start,
        diagnostic.end,
    ):
        expression = expression.parent
    return expression


def _hint(diagnostic: Diagnostic) -> str:
    hint = _HINT.search(diagnostic.message)
    return f" Did you mean {hint[1]}?" if hint is not None else ""
