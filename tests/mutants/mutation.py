"""Mutation: every small change that could be made to a module, each with the text of the changed module.

Annotations, docstrings, log calls and texts for people are left alone: other tests hold the texts, and
nothing is lost when a log line is.
"""

import ast
from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
LOGGERS = {"log", "_log", "logger", "_logger"}


class Mutant(NamedTuple):
    """One change: where, what it was, what it becomes."""

    line: int
    before: str
    after: str
    text: str
    """The whole module with the change."""


def find_mutants(source: str) -> Iterator[Mutant]:
    """Yield each change that can be made to a module, in the order of the text."""
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    data = source.encode()
    for node in _walk(ast.parse(source)):
        for after in _changes(node):
            first = starts[node.lineno - 1] + node.col_offset
            last = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            # In parentheses, so that it stays one value wherever it stands; a statement stands alone.
            new = ast.unparse(after) if isinstance(after, ast.stmt) else f"({ast.unparse(after)})"
            text = (data[:first] + new.encode() + data[last:]).decode()
            yield Mutant(node.lineno, data[first:last].decode(), new, text)


def _walk(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield statements and expressions that run, none of which is an annotation or part of a text."""
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
        return
    if isinstance(node, ast.JoinedStr | ast.Raise) or _is_left_alone(node):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "type_params", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk(child)


def _is_left_alone(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr):
        return False
    value = node.value
    is_logged = (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and isinstance(value.func.value, ast.Name)
        and value.func.value.id in LOGGERS
    )
    return is_logged or isinstance(value, ast.Constant)


def _changes(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OTHER:
            yield _with(node, ops=[OTHER[type(operator)]()])
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in OTHER:
            yield _with(node, op=OTHER[type(operator)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value=value + 1)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield ast.Return(value=ast.Constant(value=None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete():
            yield ast.Pass()
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield _with(node, test=ast.UnaryOp(op=ast.Not(), operand=test), body=body, orelse=orelse)
        case _:
            pass


def _with(node: ast.expr, **fields: object) -> ast.expr:
    changed = copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
