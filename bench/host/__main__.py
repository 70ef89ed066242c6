"""The command `python -m bench.host`: measure the host beside FastMCP, load it for a minute, and report."""

import argparse
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench import machine
from bench.host import rates, tracing, trial
from bench.host.servers import Stage
from bench.peers import HERE
from bench.process import NotRunning

RESULTS = HERE / "host" / "RESULTS.md"


def main() -> int:
    """Measure, print, and, after a whole run, write the results."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        try:
            compared = rates.measured(
                stage, rounds=2 if options.quick else 5, seconds=1.0 if options.quick else 3.0
            )
            traced = tracing.measured(
                stage, rounds=2 if options.quick else 5, seconds=1.0 if options.quick else 3.0
            )
            endured = trial.measured(stage, seconds=6.0 if options.quick else 60.0)
        except NotRunning as problem:
            print(f"The bench was stopped: {problem}", file=sys.stderr)
            return 1
    text = _report(compared, traced, endured)
    print("\n" + text)
    if not options.quick:
        RESULTS.write_text(text)
    return 0 if compared.is_reached and traced.is_reached and endured.is_passed else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.host", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and short rounds; writes no file")
    return parser.parse_args()


def _report(compared: rates.Rates, traced: tracing.Cost, endured: trial.Trial) -> str:
    facts = machine.facts([])
    parts = [
        "# The host, measured",
        "## Calls a second, one process, auth on",
        compared.table(),
        "## What tracing costs",
        traced.table(),
        "## A minute of load while a far side dies and comes back",
        endured.table(),
        "## How it was made",
        "\n".join(
            f"- {line}"
            for line in (
                f"command: `python -m bench.host`, {datetime.now(UTC):%Y-%m-%d}",
                facts[0],
                facts[2],
                facts[3],
                *compared.notes(),
                *endured.notes(),
            )
        ),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
