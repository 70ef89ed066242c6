"""Sets the rig up, runs the tests on it, and says what came of them: `python -m tests.windows [PLACE…]`."""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence

from . import using
from .rig import EMBEDDED, ROOT, Rig
from .suite import Outcome, Suite, find_files, find_own_files

PACKAGES = [
    f"tests/{name}"
    for name in ("mcp", "runtime", "aoc", "bitburner", "mercury", "install", "commands", "host")
]
MOST_SKIPPED = 0.05


def main() -> int:
    """Run what the command line names."""
    options = _parse(sys.argv[1:])
    rig = Rig(options.python)
    rig.set_up()
    started = time.monotonic()
    suite = Suite(rig, started + options.minutes * 60, ["-k", options.only] if options.only else [])
    is_whole = not options.places
    places = options.places or [*PACKAGES, *find_own_files()]
    found = suite.run(find_files(places), options.jobs)
    if options.using or (is_whole and not options.only):
        found += using.run(rig)
    report = rig.home / "outcomes.json"
    report.write_text(json.dumps([outcome._asdict() for outcome in found], indent=1), encoding="utf-8")
    seconds = time.monotonic() - started
    print(f"\nPython {options.python} for Windows, {seconds:.0f} s, all in {report.relative_to(ROOT)}")
    return summarize(found, is_whole=is_whole and not options.only)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.windows", description=__doc__)
    parser.add_argument(
        "places",
        nargs="*",
        metavar="PLACE",
        help="test files or folders; all of them by default",
    )
    parser.add_argument("--python", choices=sorted(EMBEDDED), default="3.13")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--minutes", type=float, default=90.0, help="for everything; what is left then fails")
    parser.add_argument("--using", action="store_true", help="start also what people install")
    parser.add_argument("-k", dest="only", metavar="EXPRESSION", help="as pytest's")
    return parser.parse_args(words)


def summarize(found: Sequence[Outcome], *, is_whole: bool) -> int:
    """Print a line for each package, and return the status: failures and too many skipped tests fail."""
    for package in sorted({outcome.package for outcome in found}):
        _print(package, [outcome for outcome in found if outcome.package == package])
    counts = _print("all", found)
    share = counts["skipped"] / max(1, len(found))
    print(f"  {share:.1%} of the tests were skipped; of all packages fewer than {MOST_SKIPPED:.0%} may be.")
    has_too_many = is_whole and share >= MOST_SKIPPED  # a part may be one that Windows lacks
    return 1 if counts["failed"] or has_too_many or not found else 0


def _print(name: str, found: Sequence[Outcome]) -> Counter[str]:
    counts = Counter(outcome.event for outcome in found)
    spent = sum(outcome.seconds for outcome in found)
    print(
        f"  {name:10} {len(found):5} tests: {counts['passed']} passed, {counts['failed']} failed, "
        f"{counts['skipped']} skipped, {spent:.0f} s"
    )
    return counts


if __name__ == "__main__":
    sys.exit(main())
