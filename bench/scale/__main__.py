"""The command `python -m bench.scale`: measure replicas and the servers they share; print and write it."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import machine
from bench.scale import records, replicas
from bridgehead.commands import db
from bridgehead.host.auth.tokens import TokenFile, create_token
from tests.support.postgres_server import running
from tests.support.redis_server import running_redis

RESULTS = Path(__file__).parent / "RESULTS.md"
WANTED_RECORDS = 20_000
LEAST_SHARE = 0.8
"""Of the calls a second without Redis and PostgreSQL."""
KEY = "k" * 64


def main() -> int:
    """Measure and report; 1 where a target was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short rounds; writes no file")
    quick = parser.parse_args().quick
    seconds = 1.0 if quick else 5.0
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            "| what | a second | CPU a call, replicas | CPU a call, HAProxy | median |",
            "| --- | ---: | ---: | ---: | ---: |",
            *_calls(Path(folder), seconds),
        ]
        made = list(_records(seconds))
    text = "\n".join([*lines, *(line for line, _ in made)])
    print(text)
    if not quick:
        _write(text)
    return 0 if made[-1][1] >= WANTED_RECORDS else 1


def _calls(folder: Path, seconds: float) -> Iterator[str]:
    (folder / "redis").mkdir()
    with running(fsync="on") as server, running_redis(folder / "redis") as redis:
        stores = {
            "BRIDGEHEAD_DATABASE_URL": server.url,
            "BRIDGEHEAD_REDIS_URL": redis.url,
            "BRIDGEHEAD_STATE_KEYS": KEY,
        }
        db.main(["migrate"], stores)
        yield _call_line("1 replica, direct", replicas.measured(folder, 1, seconds, {}, is_balanced=False))
        yield from _latency(folder, seconds, stores)
        for name, environment in (("", {}), (", Redis and PostgreSQL", stores)):
            for count in (1, 2, 4):
                found = replicas.measured(folder, count, seconds, environment, is_balanced=True)
                yield _call_line(f"{count} behind HAProxy{name}", found)


def _latency(folder: Path, seconds: float, stores: dict[str, str]) -> Iterator[str]:
    """Measure a caller whose requests are limited, with and without the servers: what they add to each."""
    medians, means = [], []
    entry, token = create_token("bench", 0.0, per_minute=100_000_000)
    file = TokenFile(folder / "tokens.json")
    file.add(entry)
    needed = {"BRIDGEHEAD_AUTH": "on", "BRIDGEHEAD_TOKENS_FILE": str(file.path)}
    for name, shared in (("", {}), (", Redis and PostgreSQL", stores)):
        found = replicas.measured(
            folder, 1, seconds, {**needed, **shared}, is_balanced=False, connections=1, token=token
        )
        medians.append(found["median_ms"] * 1000)
        means.append(1e6 / found["rate"])  # some calls find that an earlier one has asked for them
        yield _call_line(f"1 replica, direct, one caller with a limit{name}", found)
    added = f"{medians[1] - medians[0]:+.0f} µs, mean {means[1] - means[0]:+.0f} µs"
    yield f"| added by Redis and PostgreSQL to each call | | | | {added} |"


def _call_line(what: str, found: dict[str, float]) -> str:
    print(f"measured: {what}", file=sys.stderr, flush=True)
    balancer = f"{found['balancer_us']:.0f} µs" if found["balancer_us"] else ""
    cpu, median = f"{found['cpu_us']:.0f} µs", f"{found['median_ms']:.2f} ms"
    return f"| {what} | {found['rate']:,.0f} calls | {cpu} | {balancer} | {median} |"


def _records(seconds: float) -> Iterator[tuple[str, float]]:
    for count, callers in ((1, 1), (2, 64), (4, 64), (1, 64)):
        found = records.measured(seconds, count, callers)
        noun = "replica" if count == 1 else "replicas"
        what = f"durable records, {count} {noun}, {callers} callers each"
        print(f"measured: {what}", file=sys.stderr, flush=True)
        line = f"| {what} | {found['rate']:,.0f} | {found['cpu_us']:.0f} µs | | {found['median_ms']:.1f} ms |"
        yield line, found["rate"]


def _write(text: str) -> None:
    """Put the table between the marks of the page, whose model is written by hand."""
    begin, end = "<!-- measured -->\n", "<!-- until here -->\n"
    page = RESULTS.read_text(encoding="utf-8")
    day = datetime.now(UTC).date().isoformat()
    before, _, rest = page.partition(begin)
    after = rest.partition(end)[2]
    made = f"{day}, {machine()}.\n\n{text}\n"
    RESULTS.write_text(f"{before}{begin}\n{made}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
