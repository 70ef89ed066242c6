"""`make mutants`: try the mutants of each target, and see that its tests notice them.

python -m tests.mutants [module ...] [--changed] [--jobs N] [--again] [--explained] [--record]
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import results
from tests.mutants.mutation import ENVIRONMENT, Mutant, instrument
from tests.mutants.workspace import ROOT, Workspace

HERE = Path(__file__).parent
FOLDER = ROOT / "build" / "mutants"
PYTEST = ["-m", "pytest", "-q", "-s", "-n", "0", "-p", "no:cacheprovider", "--no-header"]
IMPORT_SECONDS = 300.0
# A test that waits for what a mutant never does is given up sooner than one on a busy machine; on one that is
# very busy, set it in the environment.
PATIENCE = {"BRIDGEHEAD_TEST_PATIENCE": os.environ.get("BRIDGEHEAD_TEST_PATIENCE", "10")}
TEST_SECONDS = {"BRIDGEHEAD_TEST_SECONDS": "60"}


@dataclass(frozen=True)
class Target:
    """A module and the tests that have to notice what changes in it."""

    module: str
    tests: list[str]


def targets(chosen: list[str]) -> list[Target]:
    """Read the targets; chosen are those whose module has one of the names in it."""
    entries = tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))
    found = [Target(f"bridgehead.{module}", tests) for module, tests in entries.items()]
    return [one for one in found if not chosen or any(name in one.module for name in chosen)]


class LastTrial:
    """What killed each mutant of a module the last time, which holds while the module stays the same."""

    def __init__(self, module: str, source: str) -> None:
        self._path = FOLDER / f"{module}.json"
        self._source = hashlib.sha256(source.encode()).hexdigest()

    def read(self) -> dict[int, str | None]:
        """Return the killers by mutant; nothing where the module has changed since."""
        found = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        killers = found.get("killers", {}) if found.get("source") == self._source else {}
        return {int(number): killer for number, killer in killers.items()}

    def write(self, killers: dict[int, str | None]) -> None:
        """Keep the killers for another time."""
        found = {"source": self._source, "killers": killers}
        self._path.write_text(json.dumps(found), encoding="utf-8")


def try_all(target: Target, jobs: int, *, again: bool = False, explained: bool = False) -> results.Result:
    """Try every mutant of a module; again, only those that survived the last time.

    A survivor runs every test that comes by it, so the few of them take longer than all the others. Those
    with a reason are counted as survivors without a trial, unless `explained` are to be tried as well.
    """
    began = time.monotonic()
    workspace = Workspace(FOLDER / target.module)
    workspace.make()
    source = workspace.source(target.module)
    text = source.read_text(encoding="utf-8")
    instrumented, mutants = instrument(text)
    source.write_text(instrumented, encoding="utf-8")
    last = LastTrial(target.module, text)
    killers = last.read() if again else {}
    reasons = {} if explained else results.reasons().get(target.module, {})
    left = [m for m in mutants if not killers.get(m.number) and m.change not in reasons]
    killers |= _try_in_forks(workspace, target, left, jobs)
    # What acts at import and was not noticed so far may still be noticed in a process of its own.
    left = [m for m in left if m.at_import and not killers[m.number]]
    killers |= _try_alone(workspace, target, left, jobs)
    last.write(killers)
    survivors = [mutant for mutant in mutants if not killers.get(mutant.number)]
    seconds = time.monotonic() - began
    return results.Result(target.module, len(mutants), survivors, seconds, results.digest(text))


def _try_in_forks(
    workspace: Workspace, target: Target, mutants: list[Mutant], jobs: int
) -> dict[int, str | None]:
    file = workspace.folder / "results.jsonl"
    plan = {
        "module": target.module,
        "numbers": [mutant.number for mutant in mutants],
        "at_import": [mutant.number for mutant in mutants if mutant.at_import],
        "jobs": jobs,
        "results": str(file),
        "folder": str(workspace.folder / "tmp"),
    }
    subprocess.run(
        [workspace.python, *PYTEST, "-p", "tests.mutants.trial", *target.tests],
        cwd=workspace.folder,
        env={**os.environ, "MUTANTS_PLAN": json.dumps(plan), "PYTHONPATH": str(workspace.folder), **PATIENCE},
        check=True,
    )
    tried = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {one["number"]: one["killer"] for one in tried}


def _try_alone(
    workspace: Workspace, target: Target, mutants: list[Mutant], jobs: int
) -> dict[int, str | None]:
    """Try mutants that act at import, each in a process of its own, on the module's own tests."""

    def attempt(mutant: Mutant) -> tuple[int, str | None]:
        temporary = workspace.folder / "tmp" / f"alone-{mutant.number}"
        try:
            done = subprocess.run(
                [workspace.python, *PYTEST, "-x", f"--basetemp={temporary}", *target.tests[:2]],
                cwd=workspace.folder,
                # A PYTHONPATH from outside would import the unchanged module, and every mutant would survive.
                env={
                    **os.environ,
                    ENVIRONMENT: str(mutant.number),
                    "PYTHONPATH": str(workspace.folder),
                    **PATIENCE,
                    **TEST_SECONDS,
                },
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=IMPORT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return mutant.number, "it hangs"
        return mutant.number, f"status {done.returncode}" if done.returncode else None

    with ThreadPoolExecutor(jobs) as pool:
        return dict(pool.map(attempt, mutants))


def main() -> int:
    """Try the mutants of every chosen target, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("module", nargs="*", help="a part of a module's name; all targets by default")
    parser.add_argument(
        "--changed", action="store_true", help="only targets whose code changed since they were measured"
    )
    parser.add_argument("--jobs", type=int, default=4 * (os.cpu_count() or 1), help="mutants to try at once")
    parser.add_argument("--again", action="store_true", help="try only what survived, after adding tests")
    parser.add_argument("--explained", action="store_true", help="try survivors with a reason as well")
    parser.add_argument("--record", action="store_true", help="write the figures to results.md")
    arguments = parser.parse_args()
    chosen = targets(arguments.module)
    if not chosen:
        parser.error(f"No target is called {' or '.join(arguments.module)}. See tests/mutants/targets.toml.")
    if arguments.changed:
        changed = results.find_changed()
        chosen = [target for target in chosen if target.module in changed]
    good = True
    for target in chosen:
        try:
            result = try_all(target, arguments.jobs, again=arguments.again, explained=arguments.explained)
        except subprocess.CalledProcessError:
            print(f"{target.module}: its tests do not pass as they are")
            good = False
            continue
        results.show(result)
        if arguments.record:
            results.record(result)
        good &= result.is_good()
    for module in results.find_changed():
        print(f"{module}: its code is not the one that was measured")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
