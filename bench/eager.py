"""Eager: what beginning the task of a coroutine tool at once saves, in CPU time a call over stdio.

`python -m bench.eager`, with Python 3.12 or newer. The same server answers the same calls both ways.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence

from bridgehead.mcp import Bridge, Context, NoArguments, stdio

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
CALL = {"name": "answer", "arguments": {}}
AT_ONCE = 50
EAGER, PLAIN = "eager", "plain"


def serve(way: str) -> None:
    """Serve a tool that is a coroutine and never waits, and say at the end what that took."""
    from bridgehead.mcp.stdio import server

    if way == PLAIN:
        vars(server)["task_starter"] = lambda loop: loop.create_task
    bridge = Bridge("bench", "1")

    @bridge.tool("Answer.")
    async def answer(_: NoArguments, __: Context[None]) -> str:
        return "ok"

    stdio.run(bridge)
    used = resource.getrusage(resource.RUSAGE_SELF)
    sys.stderr.write(f"{used.ru_utime + used.ru_stime}\n")


def measure(way: str, calls: int, *, at_once: bool) -> float:
    """Return the seconds of CPU that a server used for so many calls, its start included."""
    command = [sys.executable, "-m", "bench.eager", "--serve", way]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        said, given, used = process.stdout, process.stdin, process.stderr
        assert said is not None
        assert given is not None
        assert used is not None
        for start in range(0, calls, AT_ONCE if at_once else 1):
            numbers = range(start, min(calls, start + (AT_ONCE if at_once else 1)))
            given.write(b"".join(encode(number) for number in numbers))
            given.flush()
            for _ in numbers:
                assert b'"result"' in said.readline()
        given.close()
        return float(used.read())


def encode(number: int) -> bytes:
    """Return a message: the first one begins, all others call."""
    method, params = ("tools/call", CALL) if number else ("initialize", INITIALIZE)
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def compare(rounds: int, calls: int, *, at_once: bool) -> dict[str, float]:
    """Return the microseconds a call of each way; what the start takes is taken off."""
    found: dict[str, list[float]] = {EAGER: [], PLAIN: []}
    for _ in range(rounds):
        for way, values in found.items():
            used = measure(way, calls, at_once=at_once) - measure(way, 2, at_once=at_once)
            values.append(used / (calls - 2) * 1e6)
    return {way: statistics.median(values) for way, values in found.items()}


def main(words: Sequence[str]) -> None:
    """Measure and print both."""
    parser = argparse.ArgumentParser(prog="python -m bench.eager", description=__doc__)
    parser.add_argument("--serve", choices=(EAGER, PLAIN), help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=10_000)
    options = parser.parse_args(words)
    if options.serve:
        serve(options.serve)
        return
    print(f"Python {sys.version.split()[0]}, CPU time of a call of a coroutine tool over stdio")
    for name, at_once in (("one at a time", False), (f"{AT_ONCE} at once", True)):
        found = compare(options.rounds, options.calls, at_once=at_once)
        ratio = found[EAGER] / found[PLAIN]
        print(f"  {name:14} eager {found[EAGER]:6.1f} us, plain {found[PLAIN]:6.1f} us, ratio {ratio:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
