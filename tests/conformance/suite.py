"""A run of one conformance suite: owns starting it and reading what each of its checks came to."""

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance.install import NEWEST, STABLE, command
from tests.interop.node import ROOT, Package

SECONDS = 300
# A whole suite ends with a line of the first kind, a single scenario with one of the second.
TOTAL = re.compile(
    r"^(?:Total|Passed): (?P<passed>\d+)(?: passed|/\d+), (?P<failed>\d+) failed", re.MULTILINE
)
HAS_NO_SUCH_SCENARIO = re.compile(r"^SKIPPED: scenario|Unknown scenario", re.MULTILINE)


@dataclass(frozen=True)
class Suite:
    """A version of the suite at a revision of the protocol, and how many checks must pass."""

    name: str
    package: Package
    mark: int
    revision: str | None = None
    requirements: str | None = None
    """The revision whose frozen requirements are run, with the extensions that this revision knows."""
    scenario: str | None = None
    """The one scenario that is run, of an extension that no requirements know yet."""

    def arguments(self, address: str, scenario: str | None) -> list[str]:
        scenario = scenario or self.scenario
        start = ["server", "--url", f"{address}/mcp"]
        if self.requirements and scenario is None:
            return [*start, "--requirements", self.requirements]
        what = ["--scenario", scenario] if scenario else ["--suite", "all"]
        revision = ["--spec-version", self.revision] if self.revision else []
        return [*start, *what, *revision]


SUITES = (
    Suite("0.1.16", STABLE, mark=47),
    Suite("0.2.0-alpha.12 at 2025-11-25", NEWEST, mark=84, revision="2025-11-25"),
    Suite("0.2.0-alpha.12 at 2026-07-28", NEWEST, mark=197, requirements="2026-07-28"),
    Suite("skills, entries", NEWEST, 32, scenario="sep-2640-skills-enumeration"),
    Suite("skills, resources", NEWEST, 6, scenario="sep-2640-skills-manifest"),
)


@dataclass(frozen=True)
class Outcome:
    """What a run came to: how many checks passed and failed, and a line for each that did not pass."""

    suite: Suite
    passed: int
    failed: int
    remarks: list[str] = field(default_factory=list)
    output: str = ""

    @property
    def warnings(self) -> int:
        return sum(remark.startswith("WARNING") for remark in self.remarks)

    def is_good(self, *, whole: bool) -> bool:
        """Whether nothing failed and, for a whole suite, enough was checked."""
        return self.failed == 0 and self.passed >= (self.suite.mark if whole else 1)


def run(suite: Suite, address: str, scenario: str | None = None) -> Outcome | None:
    """Run a suite or one scenario of it; nothing if the suite has no such scenario."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*command(suite.package), *suite.arguments(address, scenario), "--output-dir", folder],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        remarks = _remarks(Path(folder))
    output = done.stdout + done.stderr
    total = TOTAL.search(output)
    if total is not None:
        return Outcome(suite, int(total["passed"]), int(total["failed"]), remarks, output)
    if scenario and HAS_NO_SUCH_SCENARIO.search(output):
        return None
    return Outcome(suite, 0, 1, [*remarks, f"FAILURE no total, but exit status {done.returncode}"], output)


def _remarks(folder: Path) -> list[str]:
    files = sorted(folder.rglob("checks.json"))
    checks = [check for file in files for check in json.loads(file.read_text(encoding="utf-8"))]
    return [_remark(check) for check in checks if check["status"] in {"FAILURE", "WARNING"}]


def _remark(check: dict[str, Any]) -> str:
    return f"{check['status']} {check['id']}: {check.get('errorMessage') or check['description']}"
