"""The command `python -m bench.mercury.money`: many calls, bridges that are killed, every cent compared.

The bridges run against an upstream that bills each request on receipt and then misbehaves. Its journal is
compared with what the bridges say (tests/support/money_run.py has the rules). Exits with 1 on a violation.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from bench.table import draw
from bridgehead.commands import db
from tests.support import money_run
from tests.support.money_run import Outcome, Plan
from tests.support.postgres_server import running

BUDGET_A_CALL = 0.0001
"""Dollars. Less than the calls cost, so that the budget is used up part of the way."""
MOST_SHOWN = 20


def main() -> int:
    """Run, print the table and what contradicts the rules."""
    parser = argparse.ArgumentParser(prog="python -m bench.mercury.money", description=__doc__)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--kills", type=int, default=30, help="how often a bridge is killed (SIGKILL)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bridges", type=int, default=2, help="bridge processes at a time (default 2)")
    parser.add_argument(
        "--budget", type=float, help=f"dollars (default {BUDGET_A_CALL} a call, which is too little for all)"
    )
    parser.add_argument(
        "--postgres", action="store_true", help="share a PostgreSQL, with a state folder for each bridge"
    )
    parser.add_argument(
        "--expire", action="store_true", help="wait until the reservations of killed bridges have expired"
    )
    options = parser.parse_args()
    budget = BUDGET_A_CALL * options.calls if options.budget is None else options.budget
    with tempfile.TemporaryDirectory() as folder, _database(is_wanted=options.postgres) as url:
        plan = Plan(options.calls, budget, options.seed, options.kills, options.bridges, url)
        outcome = asyncio.run(money_run.run(plan, Path(folder), expire=options.expire))
        violations = outcome.find_violations()
    print(_table(outcome, "broken" if violations else "kept"))
    print("\nHow the calls ended: " + ", ".join(f"{code} {n:,}" for code, n in outcome.codes.most_common()))
    for violation in violations[:MOST_SHOWN]:
        print(f"- {violation}")
    if len(violations) > MOST_SHOWN:
        print(f"- and {len(violations) - MOST_SHOWN:,} more")
    return 1 if violations else 0


@contextmanager
def _database(*, is_wanted: bool) -> Iterator[str]:
    """Give the address of a database with our tables, or nothing."""
    if not is_wanted:
        yield ""
        return
    with running() as server:
        url = server.make_database()
        with redirect_stdout(sys.stderr):  # it lists what it makes, and standard output is for the result
            db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})
        yield url


def _table(outcome: Outcome, verdict: str) -> str:
    plan = outcome.plan
    columns = {
        "store": "PostgreSQL" if plan.database_url else "SQLite",
        "calls": f"{plan.calls:,}",
        "kills": f"{outcome.kills:,}",
        "sends journalled": f"{len(outcome.bills):,}",
        "charged": f"${outcome.charged:.6f}",
        "settled": f"${outcome.settled:.6f}",
        "uncertain": f"${outcome.uncertain:.6f}",
        "reserved": f"${outcome.reserved:.6f}",
        "budget": f"${outcome.budget:.6f}",
        "refused": f"{outcome.codes['BUDGET_EXCEEDED']:,}",
        "rules": verdict,
    }
    return draw([list(columns), list(columns.values())])


if __name__ == "__main__":
    sys.exit(main())
