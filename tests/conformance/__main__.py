"""The official conformance suites against the conformance server: `python -m tests.conformance`.

Installs the suites on the first run, prints one table, and exits with 1 if a check failed or if fewer passed
than should.
"""

import argparse

from tests.conformance.suite import SUITES, Outcome, run
from tests.interop.server_process import serving

ROW = "{:<30} {:>6} {:>6} {:>8} {:>5}  {}"


def main() -> int:
    options = parsed()
    suites = [suite for suite in SUITES if options.suite_version in suite.name]
    with serving("tests.conformance.server", "--port") as address:
        runs = [run(suite, address, options.scenario) for suite in suites]
    outcomes = [outcome for outcome in runs if outcome is not None]
    if options.verbose:
        print("\n".join(outcome.output for outcome in outcomes))
    report(outcomes, whole=options.scenario is None)
    good = [outcome.is_good(whole=options.scenario is None) for outcome in outcomes]
    return 0 if good and all(good) else 1


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("--scenario", metavar="NAME", help="run this scenario alone")
    parser.add_argument(
        "--suite-version", default="", metavar="TEXT", help="run only the suites with this in their name"
    )
    parser.add_argument("--verbose", action="store_true", help="show everything that the suites print")
    return parser.parse_args()


def report(outcomes: list[Outcome], *, whole: bool) -> None:
    for outcome in outcomes:
        for remark in outcome.remarks:
            print(f"{outcome.suite.name}: {remark}")
    print(ROW.format("suite", "passed", "failed", "warnings", "mark", ""))
    for outcome in outcomes:
        verdict = "ok" if outcome.is_good(whole=whole) else "failed"
        mark = outcome.suite.mark if whole else 1
        print(ROW.format(outcome.suite.name, outcome.passed, outcome.failed, outcome.warnings, mark, verdict))


if __name__ == "__main__":
    raise SystemExit(main())
