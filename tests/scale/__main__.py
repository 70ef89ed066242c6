"""Two replicas behind HAProxy: `python -m tests.scale`. Exits with 1 where a check fails."""

import asyncio
import tempfile
from pathlib import Path

from tests.conformance.__main__ import report
from tests.conformance.suite import SUITES, run
from tests.scale.replicas import replicated
from tests.scale.rolling import restart_all


def main() -> int:
    return int(not all([check_conformance(), check_rolling_restart()]))


def check_conformance() -> bool:
    """Run the official suites with every request going to the next replica."""
    suites = [suite for suite in SUITES if suite.revision or suite.requirements]
    with replicated("tests.scale.conformance_replica") as address:
        outcomes = [run(suite, f"{address}/conformance") for suite in suites]
    found = [outcome for outcome in outcomes if outcome is not None]
    report(found, whole=True)
    return all(outcome.is_good(whole=True) for outcome in found)


def check_rolling_restart() -> bool:
    """Restart every replica while clients call."""
    with tempfile.TemporaryDirectory() as folder:
        load = asyncio.run(restart_all(Path(folder)))
    print(f"rolling restart: {load.answered} calls answered, {len(load.failures)} failed")
    print("\n".join(load.failures[:10]))
    return not load.failures


if __name__ == "__main__":
    raise SystemExit(main())
