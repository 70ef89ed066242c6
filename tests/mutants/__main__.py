"""`make mutants`: changes one thing at a time in modules drawn by lot, and sees that tests notice.

python -m tests.mutants [--seed N] [--count N] [--jobs N] [PART_OF_A_PATH …]

The seed is the date unless it is given, so that nobody can learn the sample. A mutant is killed when the test
file of its module fails, or else the tests of its package.
"""

import argparse
import datetime as dt
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

from .mutation import Mutant, find_mutants
from .workspace import ROOT, Workspace

SOURCE = ROOT / "src" / "bridgehead"
FOLDER = ROOT / "build" / "mutants"
PYTEST = ["-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
SECONDS = 600.0
# A test that waits for what a mutant never does is given up sooner than one on a busy machine.
ENVIRONMENT = {"BRIDGEHEAD_TEST_PATIENCE": "10", "BRIDGEHEAD_TEST_SECONDS": "60", "MUTANT": "1"}
LEAST, LEAST_GUARDED = 0.85, 0.95
GUARDED = ("host/auth/", "host/ownership/", "host/proxies.py", "mcp/http/guard.py", "mercury/calling/")
"""Security and money."""


class Candidate(NamedTuple):
    """A mutant and the module that it changes."""

    path: Path
    """Below the package's folder."""
    mutant: Mutant

    @property
    def is_guarded(self) -> bool:
        return self.path.as_posix().startswith(GUARDED)

    def tests(self) -> list[str]:
        """Return what has to notice: the module's own test file, then the tests of its package."""
        own = ROOT / "tests" / self.path.parent / f"test_{self.path.stem}.py"
        package = ROOT / "tests" / self.path.parent
        found = [own] if own.exists() else []
        return [path.relative_to(ROOT).as_posix() for path in (*found, package) if path.exists()]


def draw(seed: int, count: int, parts: Sequence[str] = ()) -> list[Candidate]:
    """Draw mutants of all modules, each as likely as any other; half as many more of security and money."""
    paths = sorted(SOURCE.rglob("*.py"))
    paths = [path for path in paths if not parts or any(part in path.as_posix() for part in parts)]
    every = [
        Candidate(path.relative_to(SOURCE), mutant)
        for path in paths
        for mutant in find_mutants(path.read_text(encoding="utf-8"))
    ]
    lot = random.Random(seed)  # noqa: S311 - a sample, no secret
    guarded = [one for one in every if one.is_guarded]
    return [
        *lot.sample(every, min(count, len(every))),
        *lot.sample(guarded, min(count // 2, len(guarded))),
    ]


def is_killed(candidate: Candidate, workspace: Workspace) -> bool:
    """Put the mutant into a copy of the project and run its tests there."""
    source = workspace.folder / "src" / "bridgehead" / candidate.path
    original = source.read_text(encoding="utf-8")
    source.write_text(candidate.mutant.text, encoding="utf-8")
    try:
        return any(_fails(tests, workspace) for tests in candidate.tests())
    finally:
        source.write_text(original, encoding="utf-8")


def _fails(tests: str, workspace: Workspace) -> bool:
    command = [str(workspace.python), *PYTEST, f"--basetemp={workspace.folder / 'tmp'}", tests]
    try:
        done = subprocess.run(
            command,
            cwd=workspace.folder,
            env={**os.environ, **ENVIRONMENT},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main(words: Sequence[str]) -> int:
    """Try the sample; return 1 if too few were noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument(
        "parts", nargs="*", metavar="PART_OF_A_PATH", help="only modules with this in their path"
    )
    parser.add_argument("--seed", type=int, default=int(dt.datetime.now(dt.UTC).strftime("%Y%m%d")))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(words)
    candidates = draw(options.seed, options.count, options.parts)
    print(f"Seed {options.seed}: {len(candidates)} mutants", flush=True)
    free: Queue[Workspace] = Queue()
    for number in range(options.jobs):
        workspace = Workspace(FOLDER / str(number))
        workspace.make()
        free.put(workspace)

    def attempt(candidate: Candidate) -> bool:
        workspace = free.get()
        try:
            noticed = is_killed(candidate, workspace)
        finally:
            free.put(workspace)
        if not noticed:
            mutant = candidate.mutant
            print(f"survived: {candidate.path}:{mutant.line}: {mutant.before} → {mutant.after}", flush=True)
        return noticed

    with ThreadPoolExecutor(options.jobs) as pool:
        killed = list(pool.map(attempt, candidates))
    return report(list(zip(candidates, killed, strict=True)))


def report(tried: Sequence[tuple[Candidate, bool]]) -> int:
    """Print the shares; return 1 if one of them is too small."""
    guarded = [killed for candidate, killed in tried if candidate.is_guarded]
    others = [killed for candidate, killed in tried if not candidate.is_guarded]
    is_good = True
    for name, killed, least in (("security and money", guarded, LEAST_GUARDED), ("the rest", others, LEAST)):
        if killed:
            share = sum(killed) / len(killed)
            print(f"{name}: {sum(killed)} of {len(killed)} killed ({share:.0%}; at least {least:.0%})")
            is_good &= share >= least
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
