"""The whole report: the tables, and how they came about."""

from dataclasses import dataclass
from datetime import UTC, datetime

from bench import http, machine, stdio, table
from bench.peers import Peer
from bench.results import Results


@dataclass(frozen=True)
class Plan:
    """What one run of the bench does."""

    command: str
    transports: tuple[str, ...]
    rounds: int
    stdio: stdio.Effort
    http: http.Effort


def write(plan: Plan, peers: list[Peer], results: Results, profile: str) -> str:
    """Put the report together."""
    parts = [
        "# Benchmark results",
        (
            "The same one-tool echo server, written for each library and measured in one run: medians of "
            f"{plan.rounds} interleaved rounds. In brackets is ours divided by that server: for cold start "
            "and memory less is better, for calls more is better."
        ),
        table.comparison(peers, results, plan.transports),
        table.problems(peers, results),
        "## Targets",
        table.targets(peers, results, plan.transports),
        "## Where the time of ours goes" if profile else "",
        profile,
        "## How it was made",
        "\n".join(f"- {line}" for line in _notes(plan, peers, results)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _notes(plan: Plan, peers: list[Peer], results: Results) -> list[str]:
    """Say what a reader needs to judge the numbers."""
    return [
        f"command: `{plan.command}`, {datetime.now(UTC):%Y-%m-%d}",
        *machine.facts(peers),
        (
            "cold start: from spawning the process to having read its answer to `initialize`, "
            f"{plan.stdio.starts} times a round"
        ),
        (
            "every echo is written in the fastest way its library has: for ours a plain function, because it "
            "waits for nothing; most tools of a bridge wait, and are coroutines like those of the other "
            "servers, so that is shown too"
        ),
        "calls: each server is started once, warmed up, and then takes its turn in every round",
        (
            "stdio, one at a time: client and server share one core, because waking another one takes longer "
            "than most servers take for a call"
        ),
        (
            f"stdio, pipelined: bursts of {plan.stdio.burst:,} calls, written while answers are read; "
            "memory is what is resident after them"
        ),
        (
            "stdio, pipelined: the Python libraries are slower than one at a time. They hand each message to "
            "a thread and back (about 9 waits a call, with 1 call under way or 5,000), so pipelining saves "
            "them nothing, and here they are not kept on one core, where handing over is cheap: one at a "
            "time without that, the low-level server made 290 calls a second instead of 630 on a busy machine"
        ),
        (
            f"HTTP: {plan.http.connections} keep-alive connections with one call at a time on each; sessions "
            "is protocol 2025-11-25 with a session for each connection, stateless is 2026-07-28; the Python "
            "peers run on uvicorn with httptools and uvloop, ours and the bare function on the server of "
            "this project with the same two, and all answer in plain JSON"
        ),
        (
            "a wrong answer stops the bench: over stdio all answers are parsed and checked, over HTTP each "
            "is looked at for its text and one in fifty is parsed"
        ),
        f"the HTTP load client needed at most {results.busiest_client():.0%} of a core",
        "ours, smallest to largest round by the median: " + _ranges(plan, results),
    ]


def _ranges(plan: Plan, results: Results) -> str:
    """Say how steady our own numbers were."""
    found = [
        f"{measure.title} {bounds[0]:.2f} to {bounds[1]:.2f}"
        for measure in table.MEASURES
        if measure.transport in plan.transports and (bounds := results.bounds("ours", measure.key))
    ]
    return "; ".join(found) or "not measured"
