"""A module with all its mutants in it: each is a branch that one number switches on.

`a < b` becomes `a <= b if _mutant == 7 else a < b`, so a module is compiled once and a mutant costs a
comparison. Decorated, asynchronous and generator functions need nothing special.

Annotations, docstrings, log calls, sentences for people and empty texts are left alone: other tests hold the
texts, and nothing is lost when a log line is.
"""

import ast
import json
from collections import Counter
from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import TypeVar

VARIABLE = "_mutant"
ENVIRONMENT = "MUTANT"
HEADER = f"import os as _mutant_os\n{VARIABLE} = int(_mutant_os.environ.get({ENVIRONMENT!r}, '0'))"

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
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
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
SMALL = 2
LOGGERS = {"logging", "log", "_log", "logger", "_logger", "LOG"}
NOT_VALUES = {"cast", "TypeVar", "ParamSpec", "logger", "getLogger", "overload"}

Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Mutant:
    """One change to a module."""

    number: int
    line: int
    change: str
    """Where and what, in words that stay the same when lines move."""
    at_import: bool
    """Whether it acts while the module is imported, so that it needs a process of its own."""


def instrument(source: str) -> tuple[str, list[Mutant]]:
    """Return the source with all mutants in it, and what they are."""
    tree = ast.parse(source)
    mutator = _Mutator()
    tree = mutator.visit(tree)
    first = sum(1 for _ in takewhile(_stays_first, tree.body))
    tree.body[first:first] = ast.parse(HEADER).body
    return ast.unparse(ast.fix_missing_locations(tree)), mutator.mutants


def to_json(mutants: list[Mutant]) -> str:
    """Write mutants down for another process."""
    return json.dumps([asdict(mutant) for mutant in mutants])


def from_json(text: str) -> list[Mutant]:
    """Read what `to_json` wrote."""
    return [Mutant(**fields) for fields in json.loads(text)]


def _stays_first(node: ast.stmt) -> bool:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


class _Mutator(ast.NodeTransformer):
    def __init__(self) -> None:
        self.mutants: list[Mutant] = []
        self._scope: list[str] = []
        self._functions = 0
        self._seen: Counter[str] = Counter()

    # --- what is left alone --------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> ast.AST:
        if ast.unparse(node.test) in {"TYPE_CHECKING", "__name__ == '__main__'"}:
            return node
        original = deepcopy(node.test)
        self.generic_visit(node)
        node.test = self._negated(original, node.test)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node if ast.unparse(node.value) == "Literal" else self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        if node.guard is not None:
            original = deepcopy(node.guard)
            node.guard = self._negated(original, self.visit(node.guard))
        node.body = self._statements(node.body)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = ast.unparse(node.func)
        is_other = name.rpartition(".")[2] in NOT_VALUES or name.partition(".")[0] in LOGGERS
        return node if is_other else self.generic_visit(node)

    # --- scopes --------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._scope.append(node.name)
        node.body = self._statements(node.body)
        self._scope.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._scope.append(node.name)
        # Defaults are evaluated where the function is defined.
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [default and self.visit(default) for default in node.args.kw_defaults]
        self._functions += 1
        node.body = self._statements(node.body)
        self._functions -= 1
        self._scope.pop()
        return node

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self.visit(statement) for statement in body]

    # --- statements that go --------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if not isinstance(call, ast.Call):
            return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)
        if ast.unparse(call.func).partition(".")[0] in LOGGERS:
            return node
        return self._removable(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return self._removable(node)

    def visit_Delete(self, node: ast.Delete) -> ast.AST:
        return self._removable(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        return self._removable(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        (target, *_) = node.targets
        if isinstance(target, ast.Name) and target.id.startswith("__"):
            return node
        if isinstance(target, ast.Attribute | ast.Subscript) and "__init__" not in self._scope:
            return self._removable(node)
        return self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return self._switched(node, "break → continue", ast.Continue())

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return self._switched(node, "continue → break", ast.Break())

    def _removable(self, node: ast.stmt) -> ast.AST:
        condition = self._off(node, f"without `{ast.unparse(node)}`")
        self.generic_visit(node)
        return ast.If(test=condition, body=[node], orelse=[])

    def _switched(self, node: ast.stmt, what: str, other: ast.stmt) -> ast.AST:
        return ast.If(test=self._off(node, what), body=[node], orelse=[other])

    # --- expressions that change ---------------------------------------------------------------------------

    # What a mutant does instead is made of the original: two mutants are never active at once, and a long
    # expression would otherwise double with each of its operators.

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        original = deepcopy(node)
        self.generic_visit(node)
        result: ast.expr = node
        for place, operator in enumerate(original.ops):
            operators = [*original.ops]
            operators[place] = COMPARISONS[type(operator)]()
            other = ast.Compare(left=original.left, ops=operators, comparators=original.comparators)
            result = self._choice(node, f"`{ast.unparse(original)}` → `{ast.unparse(other)}`", other, result)
        return result

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        original = deepcopy(node)
        self.generic_visit(node)
        other = ast.BoolOp(op=ast.Or() if isinstance(node.op, ast.And) else ast.And(), values=original.values)
        return self._choice(node, f"`{ast.unparse(original)}` → `{ast.unparse(other)}`", other, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        original = deepcopy(node)
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)
        if not isinstance(node.op, ast.Not | ast.USub):
            return node
        other = original.operand
        return self._choice(node, f"`{ast.unparse(original)}` → `{ast.unparse(other)}`", other, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if isinstance(node.op, ast.BitOr) and not self._functions:
            return node  # a union of types
        original = deepcopy(node)
        self.generic_visit(node)
        is_template = isinstance(original.left, ast.Constant) and isinstance(original.op, ast.Mod)
        if type(node.op) not in OPERATORS or is_template:
            return node
        other = ast.BinOp(left=original.left, op=OPERATORS[type(node.op)](), right=original.right)
        return self._choice(node, f"`{ast.unparse(original)}` → `{ast.unparse(other)}`", other, node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        original = deepcopy(node.test)
        self.generic_visit(node)
        node.test = self._negated(original, node.test)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        originals = deepcopy(node.ifs)
        self.generic_visit(node)
        node.ifs = [self._negated(*pair) for pair in zip(originals, node.ifs, strict=True)]
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is None or isinstance(node.value, ast.Constant):
            return self.generic_visit(node)
        text = ast.unparse(node)
        self.generic_visit(node)
        node.value = self._choice(node, f"`{text}` → `return None`", ast.Constant(None), node.value)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        other = _another(node.value)
        if other is None:
            return node
        return self._choice(node, f"`{node.value!r}` → `{other!r}`", ast.Constant(other), node)

    def _negated(self, original: ast.expr, test: ast.expr) -> ast.expr:
        """Negate a condition, unless a mutant of its operator does so already."""
        if isinstance(original, ast.Compare | ast.BoolOp | ast.Constant) or (
            isinstance(original, ast.UnaryOp) and isinstance(original.op, ast.Not)
        ):
            return test
        other = ast.UnaryOp(op=ast.Not(), operand=original)
        return self._choice(original, f"`{ast.unparse(original)}` negated", other, test)

    # --- the switch ----------------------------------------------------------------------------------------

    def _choice(self, node: ast.AST, what: str, other: ast.expr, original: ast.expr) -> ast.expr:
        return ast.IfExp(test=self._on(node, what), body=other, orelse=original)

    def _on(self, node: ast.AST, what: str) -> ast.expr:
        return ast.Compare(ast.Name(VARIABLE, ast.Load()), [ast.Eq()], [ast.Constant(self._add(node, what))])

    def _off(self, node: ast.AST, what: str) -> ast.expr:
        number = self._add(node, what)
        return ast.Compare(ast.Name(VARIABLE, ast.Load()), [ast.NotEq()], [ast.Constant(number)])

    def _add(self, node: ast.AST, what: str) -> int:
        change = f"{'.'.join(self._scope) or 'module'}: {' '.join(what.split())}"
        self._seen[change] += 1
        if self._seen[change] > 1:
            change += f" ({self._seen[change]})"
        number = len(self.mutants) + 1
        line = getattr(node, "lineno", 0)
        self.mutants.append(Mutant(number, line, change, at_import=not self._functions))
        return number


def _another(value: object) -> str | bytes | bool | float | None:
    """Return a value that is wrong, and not merely a little different: tuning is not what tests hold."""
    match value:
        case bool():
            return not value
        case int() | float():
            return 0 if abs(value) > SMALL else value + 1
        case str() if value and " " not in value:
            return ""
        case bytes() if value and b" " not in value:
            return b""
        case _:
            return None
