"""What a change costs in instructions: two states of this project under valgrind, which counts them.

    python -m bench.instructions REVISION

Nothing else on the machine changes such a count, and every process hashes alike. Each way of calling is run
twice, with few calls and with many: what the many take more, divided by their number, is what a call takes.
"""

import argparse
import compileall
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import http, stdio
from bench.before_after import Tree, both_trees, call_in_turn, load_http
from bench.mercury.mcp_way import McpWay
from bench.mercury.upstream import Upstream, running
from bench.message import FIRST_ID, HANDSHAKE, STATELESS, WrongAnswer
from bench.peers import HOME
from bench.process import Process
from bench.table import draw

BURST = 500
WORDS = 60
END_SECONDS = 60.0
_COUNTED = re.compile(r"I\s+refs:\s+([\d,]+)")
_RECORD = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"record_speed","arguments":'
    b'{"day":1,"phase":1,"llm_name":"bench","speed_ms":%d}}}\n'
)
Work = Callable[[Process, int], float]
"""Calls as often as it is told to, and returns how often that was."""


@dataclass(frozen=True)
class Way:
    """One way of calling: the command of the server, the calls, and how many of them are few and many."""

    title: str
    command: Callable[[Tree, tuple[str, ...]], tuple[str, ...]]
    work: Work
    few: int
    many: int


def ways(upstream: Upstream) -> list[Way]:
    """Return every way of calling that is measured."""
    port = http.free_port()

    def mercury(tree: Tree, counter: tuple[str, ...]) -> tuple[str, ...]:
        return tree.mercury(upstream, *counter)

    def aoc(tree: Tree, counter: tuple[str, ...]) -> tuple[str, ...]:
        folder = HOME / "aoc-records"
        shutil.rmtree(folder, ignore_errors=True)  # else each run would append to the file of the one before
        folder.mkdir(parents=True)
        settings = {"AOC_DATA_DIR": str(folder), "AOC_YEAR": "2025", "LOG_LEVEL": "error"}
        return tree.bridge("aoc", *counter, folder=folder, **settings)

    def over_http(era: str) -> Work:
        def work(process: Process, seconds: int) -> float:
            http.wait(process, port)
            return load_http(port, era, seconds)

        return work

    return [
        Way("stdio, one at a time", _echo("stdio"), _one_at_a_time, 200, 2000),
        Way("stdio, pipelined", _echo("stdio"), _pipelined, 1, 6),
        Way("stdio, coroutine, pipelined", _echo("coroutine", "stdio"), _pipelined, 1, 6),
        Way("HTTP, sessions", _echo("http", str(port)), over_http(HANDSHAKE), 2, 10),
        Way("HTTP, stateless", _echo("http", str(port)), over_http(STATELESS), 2, 10),
        Way("mercury call", mercury, _chats, 40, 400),
        Way("mercury piece", mercury, _stream, 200, 3000),
        Way("aoc record_speed", aoc, _records, 40, 400),
    ]


def _echo(*words: str) -> Callable[[Tree, tuple[str, ...]], tuple[str, ...]]:
    return lambda tree, counter: (*counter, *tree.echo(*words))


def main() -> int:
    """Count both states, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("revision", help="the state to compare with, as git names it")
    options = parser.parse_args()
    os.environ["PYTHONHASHSEED"] = "0"  # else a start varies by more than hundreds of calls take
    trees = both_trees(options.revision)
    rows = [["instructions", "before", "after", "after ÷ before"]]
    # With bytecode, as installed: without it, compiling is half of a start.
    for tree in trees:
        compileall.compile_dir(tree.folder / "src", quiet=1)
    start = Way("cold start", _echo("stdio"), _start, 0, 0)
    starts = [float(_count(start, tree, 0)[0]) for tree in trees]
    rows.append(_row("cold start", starts))
    with running() as upstream:
        for way in ways(upstream):
            rows.append(_row(f"{way.title}, a call", [_per_call(way, tree) for tree in trees]))
            print(*rows[-1], flush=True)
    print(f"{draw(rows)}\n\n`python -m bench.instructions {options.revision}`")
    return 0


def _row(title: str, counts: list[float]) -> list[str]:
    before, after = counts
    return [title, f"{before:,.0f}", f"{after:,.0f}", f"{after / before:.3f}"]


def _per_call(way: Way, tree: Tree) -> float:
    (few, calls), (many, more) = (_count(way, tree, number) for number in (way.few, way.many))
    return (many - few) / (more - calls)


def _count(way: Way, tree: Tree, number: int) -> tuple[int, float]:
    """Run a server to its end; return the instructions that it took and the calls that were made."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "counted"
        out = f"--cachegrind-out-file={os.devnull}"
        counter = ("valgrind", "--tool=cachegrind", "--cache-sim=no", out, f"--log-file={log}")
        with Process(way.command(tree, counter)) as process:
            calls = way.work(process, number)
            os.kill(process.pid, signal.SIGTERM)
            process.finish(END_SECONDS)
        said = log.read_text()
    found = _COUNTED.search(said)
    if found is None:
        raise SystemExit(f"valgrind counted nothing: {said[-300:]}")
    return int(found[1].replace(",", "")), calls


def _start(process: Process, _number: int) -> float:
    stdio.initialize(process)
    return 1


def _one_at_a_time(process: Process, calls: int) -> float:
    stdio.initialize(process)
    call_in_turn(process, calls)
    return calls


def _pipelined(process: Process, bursts: int) -> float:
    stdio.initialize(process)
    stdio.bursts(process, bursts, BURST)
    return bursts * BURST


def _chats(process: Process, calls: int) -> float:
    way = McpWay(process)
    way.start()
    for _ in range(calls):
        way.chat(WORDS)
    return calls


def _records(process: Process, calls: int) -> float:
    stdio.initialize(process)
    os.set_blocking(process.stdin, True)
    for number in range(FIRST_ID, FIRST_ID + calls):
        os.write(process.stdin, _RECORD % (number, number))
        answer = stdio.read_line(process)
        if b'"result"' not in answer or b'"isError":true' in answer:
            raise WrongAnswer(f"the record was not taken: {answer[:300]!r}")
    return calls


def _stream(process: Process, words: int) -> float:
    way = McpWay(process)
    way.start()
    way.streams(1, words)
    return words


if __name__ == "__main__":
    sys.exit(main())
