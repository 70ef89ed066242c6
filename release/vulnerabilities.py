"""Vulnerabilities: `python -m release.vulnerabilities PIP_AUDIT` asks about every locked package.

pip-audit calls a package that its database does not know "skipped", and still ends with success. Here only
what was looked up counts as scanned, so a database that cannot be reached never looks like a good result.
"""

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SERVICES = ("pypi", "osv")
NOT_SCANNED = "NOT SCANNED: no database of vulnerabilities can be reached from here (pypi.org, osv.dev)."


def judge(report: dict[str, Any]) -> tuple[list[str], int]:
    """Return a sentence for each vulnerability, and how many packages were looked up."""
    looked_up = [package for package in report["dependencies"] if "skip_reason" not in package]
    problems = []
    for package in looked_up:
        for each in package["vulns"]:
            fixed = ", ".join(each["fix_versions"]) or "nothing yet"
            problems.append(f"{package['name']} {package['version']}: {each['id']}, fixed in {fixed}")
    return problems, len(looked_up)


def ask(program: Path, service: str) -> dict[str, Any] | None:
    """Ask one database; None if it cannot be asked."""
    words = ["--format", "json", "--progress-spinner", "off", "--vulnerability-service", service]
    words += ["--require-hashes", "--disable-pip", "--requirement", str(ROOT / "requirements" / "team.txt")]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return None
    return report


def main() -> int:
    """Ask until a database answers; 1 is a vulnerability, or nothing scanned where it must be."""
    parser = argparse.ArgumentParser(prog="python -m release.vulnerabilities")
    parser.add_argument("program", type=Path, metavar="PIP_AUDIT")
    parser.add_argument("--required", action="store_true", help="fail where nothing can be scanned")
    options = parser.parse_args()
    for service in SERVICES:
        report = ask(options.program, service)
        problems, count = ([], 0) if report is None else judge(report)
        if report is not None and count:
            unknown = [each["name"] for each in report["dependencies"] if "skip_reason" in each]
            print(f"{service}: {count} packages looked up, {len(problems)} vulnerabilities")
            print("\n".join([*problems, *(f"{name} was not found there" for name in unknown)]))
            return int(bool(problems))
    print(NOT_SCANNED)
    return int(options.required)


if __name__ == "__main__":
    raise SystemExit(main())
