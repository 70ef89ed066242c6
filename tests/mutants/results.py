"""What came of the mutants: shown, judged against the known survivors, and recorded."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutants.mutation import Mutant

HERE = Path(__file__).parent
RECORD = HERE / "results.md"
LEAST_KILLED = 0.9
HEAD = """\
# Mutants

Made by `make mutants`; the survivors and why each may survive are in `survivors.toml`.

| module | mutants | killed | survivors | share |
| --- | ---: | ---: | ---: | ---: |
"""


@dataclass(frozen=True)
class Result:
    """What came of the mutants of one module."""

    module: str
    mutants: int
    survivors: list[Mutant]
    seconds: float

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
    known = tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))
    rows = {f"bridgehead.{name}": f"| `bridgehead.{name}` | not measured yet | | | |" for name in known}
    if RECORD.exists():
        lines = [line for line in RECORD.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
        rows |= {name: line for line in lines if (name := line.split("`")[1]) in rows}
    counts = f"{one.mutants} | {one.killed} | {len(one.survivors)} | {one.share:.0%}"
    rows[one.module] = f"| `{one.module}` | {counts} |"
    RECORD.write_text(HEAD + "".join(f"{rows[name]}\n" for name in sorted(rows)), encoding="utf-8")
