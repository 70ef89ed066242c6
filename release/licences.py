"""Licences: `python -m release.licences` fails for a shipped package whose licence nobody has looked at."""

import re
from pathlib import Path

from release.locked import Package, read

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = frozenset(
    {"MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "PSF-2.0", "MPL-2.0", "Unlicense"}
)
"""They ask for their notice to be kept, and MPL-2.0 (certifi) for changes to its own files."""


def find_problems(packages: list[Package]) -> list[str]:
    """Return a sentence for each package whose licence is unknown or not in `ALLOWED`."""
    problems = []
    for package in packages:
        # Of alternatives one is enough; of what is joined by AND each part must be allowed.
        choices = [set(re.split(r"\s+AND\s+", each.strip(" ()"))) for each in package.licence.split(" OR ")]
        if not package.licence:
            problems.append(f"{package.name} {package.version} does not tell its licence")
        elif not any(choice <= ALLOWED for choice in choices):
            problems.append(f"{package.name} {package.version} is under {package.licence!r}")
    return problems


def main() -> int:
    """Check everything that the distribution and its extras install."""
    packages = read(ROOT / "requirements" / "team.txt")
    problems = find_problems(packages)
    print("\n".join(problems) or f"{len(packages)} packages, each under a licence that is allowed")
    return int(bool(problems))


if __name__ == "__main__":
    raise SystemExit(main())
