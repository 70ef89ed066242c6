"""What came of the mutants: shown, judged against the known survivors, and recorded."""

import ast
import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutants.mutation import Mutant
from tests.mutants.workspace import ROOT

HERE = Path(__file__).parent
RECORD = HERE / "results.md"
LEAST_KILLED = 0.9
HEAD = """\
# Mutants

Made by `make mutants`; the survivors and why each may survive are in `survivors.toml`. The last column tells
the code that was measured: `python -m tests.mutants --changed` measures what is another one by now.

| module | mutants | killed | survivors | share | code |
| --- | ---: | ---: | ---: | ---: | --- |
"""


@dataclass(frozen=True)
class Result:
    """What came of the mutants of one module."""

    module: str
    mutants: int
    survivors: list[Mutant]
    seconds: float
    code: str
    """The digest of what was measured, which may have been changed since."""

    @property
    def killed(self) -> int:
        return self.mutants - len(self.survivors)

    @property
    def share(self) -> float:
        return self.killed / self.mutants if self.mutants else 1.0

    def unexplained(self) -> list[Mutant]:
        """Return the survivors without a reason."""
        known = reasons().get(self.module, {})
        return [mutant for mutant in self.survivors if mutant.change not in known]

    def is_good(self) -> bool:
        return self.share >= LEAST_KILLED and not self.unexplained()


@cache
def reasons() -> dict[str, dict[str, str]]:
    """Read why a mutant may survive, by module and change."""
    return tomllib.loads((HERE / "survivors.toml").read_text(encoding="utf-8"))


def show(result: Result) -> None:
    """Print what came of a module."""
    print(
        f"{result.module}: {result.killed} of {result.mutants} killed ({result.share:.0%}), "
        f"{result.seconds:.0f} s"
    )
    for mutant in result.unexplained():
        print(f"  survived, line {mutant.line}: {mutant.change}")
    known = reasons().get(result.module, {}).keys() - {mutant.change for mutant in result.survivors}
    for change in sorted(known):
        print(f"  no longer survives, or no longer exists: {change}")


def record(one: Result) -> None:
    """Write the figures of a module beside those of the others."""
    rows = {name: f"| `{name}` | not measured yet | | | | |" for name in known_targets()} | read_rows()
    counts = f"{one.mutants} | {one.killed} | {len(one.survivors)} | {one.share:.0%}"
    rows[one.module] = f"| `{one.module}` | {counts} | `{one.code}` |"
    RECORD.write_text(HEAD + "".join(f"{rows[name]}\n" for name in sorted(rows)), encoding="utf-8")


def find_changed() -> list[str]:
    """Return the targets that were not measured yet, or whose code is not the one that was."""
    rows = read_rows()
    return [name for name in known_targets() if f"`{digest(source_of(name))}`" not in rows.get(name, "")]


def known_targets() -> list[str]:
    return [
        f"bridgehead.{name}" for name in tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))
    ]


def read_rows() -> dict[str, str]:
    """Read what is recorded of the modules that are targets."""
    text = RECORD.read_text(encoding="utf-8") if RECORD.exists() else ""
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    return {name: rows[name] for name in known_targets() if name in rows}


def source_of(module: str) -> str:
    return ROOT.joinpath("src", *module.split(".")).with_suffix(".py").read_text(encoding="utf-8")


def digest(source: str) -> str:
    """Tell code from other code, whatever its comments, docstrings and line breaks."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not _is_text(one)] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:8]


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
