"""The command `python -m bench.host.worst`: every tool with its worst arguments, beside an honest client.

A host with all bridges serves three tokens. Two of them, one read-only and one that may write, call each tool
with the worst arguments that it accepts (`worst_arguments`), on several connections, some of which hang up at
once. The third token goes on with its own work meanwhile, after a while alone, before anything is called.

The whole table is called three times. The exit status is 1 where the honest client waits 250 ms longer than
alone in two of them or 1 s longer in one, where a tool answers nobody, or where the memory of the host does
not return. The first pass loads what is loaded once (parsers, definitions, compiled schemas) and fills the
caches, so each row is compared from the second pass on. Of the whole, the lowest memory of the last two
passes is compared: the allocator gives pages back in steps, so one reading differs from the next by up to
15 MB, and only what is really kept raises the lowest. Nothing is tried again.
"""

import argparse
import asyncio
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine, table
from bench.host.calls import STATELESS, Call, post
from bench.host.worst_arguments import LONG_LINE, RING, SCRIPTS, WORST
from bench.http import free_port, wait
from bench.load import complete
from bench.mercury.upstream import KEY, running
from bench.peers import HERE
from bench.process import NotRunning, Process, RunQueue
from bridgehead.host.auth.tokens import TokenFile, create_token

ROOT = HERE.parent
RESULTS = HERE / "host" / "WORST.md"
CONNECTIONS = 8
"""Connections of an attacker; every fourth hangs up as soon as it has sent its call."""
ATTACK_SECONDS = 0.3
LAST_SECONDS = 30.0
"""How long an attack waits for its first answer; calls that are still open then are cut off."""
HANG_UP_PAUSE = 0.05
PAUSE = 0.005
PASSES = 3
BASELINE_SECONDS = 3.0
MOST_MS = 250.0
"""By how much the longest wait of a pass may exceed the baseline; the median of the passes counts, because a
busy machine can stop the one thread that holds the interpreter."""
MOST_ONCE_MS = 1000.0
"""The same, of each pass: what is slow the first time alone counts too."""
MOST_GROWTH = 0.10
SETTLE_SECONDS = 3.0
"""How long memory may take to return."""
WARM_UPS = 15
"""Writes of the longest scripts before the first pass. Parsing them leaves holes in the allocator's arenas,
which later parses fill: in 30 passes of `write_file` alone memory rose from 60 to 130 MB in ten, and stayed
there."""
RECORDS = 400
HONEST = (
    Call("/mcp", "record_speed", b'{"day":1,"phase":1,"llm_name":"honest","speed_ms":%d}'),
    Call("/mcp", "connection_status", b"{}", b"content"),
    Call("/mcp", "mercury_list_models", b"{}", b"content"),
)
"""What the honest client does in turns: a write to the disk in a thread, and two answers from memory."""


META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "worst", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def write_request(port: int, token: str, method: str, params: dict[str, Any]) -> bytes:
    """Write a request of the stateless era."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}
    headers = (
        f"Authorization: Bearer {token}\r\nMCP-Protocol-Version: {STATELESS}\r\nMcp-Method: {method}\r\n"
    )
    if "name" in params:
        headers += f"Mcp-Name: {params['name']}\r\n"
    return post("/mcp", port, headers.encode(), json.dumps(message, ensure_ascii=False).encode())


def write_call(port: int, token: str, tool: str, arguments: dict[str, Any]) -> bytes:
    """Write a call of a tool."""
    return write_request(port, token, "tools/call", {"name": tool, "arguments": arguments})


# --- the attack: a process of its own ---------------------------------------------------------------------


async def attack(port: int, token: str, tool: str, seconds: float) -> int:
    """Call a tool on several connections at once; returns how many calls were answered."""
    requests = [write_call(port, token, tool, arguments) for arguments in WORST[tool]]
    until = time.monotonic() + seconds
    answered = 0
    is_answered = asyncio.Event()

    async def press(number: int) -> None:
        nonlocal answered
        for request in itertools.islice(itertools.cycle(requests), number, None):
            if time.monotonic() > until:
                return
            with suppress(OSError, TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(request)
                    await writer.drain()
                    answer = b""
                    while number % 4 != 3 and not complete(answer):
                        piece = await reader.read(1024 * 1024)
                        if not piece:
                            break
                        answer += piece
                    # A far side that is stuck answers nobody, and a call that gave up waiting is no answer.
                    if answer.startswith(b"HTTP/1.1 200") and b'"code":"timeout"' not in answer:
                        answered += 1
                        is_answered.set()
                finally:
                    writer.close()
            if number % 4 == 3:  # a flood of requests is what `fairness` measures
                await asyncio.sleep(HANG_UP_PAUSE)

    pressing = [asyncio.create_task(press(number)) for number in range(CONNECTIONS)]
    await asyncio.wait(pressing, timeout=seconds)
    with suppress(TimeoutError):
        await asyncio.wait_for(is_answered.wait(), LAST_SECONDS)
    for task in pressing:
        task.cancel()
    await asyncio.wait(pressing)
    return answered


def attack_on_demand(port: int) -> None:
    """Read a token, a tool and seconds from each line, attack, and print how many calls were answered."""
    for line in sys.stdin:
        token, tool, seconds = line.split()
        print(asyncio.run(attack(port, token, tool, float(seconds))), flush=True)


class Attacker:
    """The process of the attacks: one for all of them, because its start would take longer than an attack."""

    def __init__(self, port: int, module: str = "bench.host.worst") -> None:
        command = ("nice", "-n", "10", sys.executable, "-m", module, "--attack", str(port))
        self._child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._orders, self._reports = self._child.stdin, self._child.stdout

    def start(self, token: str, tool: str, seconds: float) -> None:
        """Begin an attack."""
        self._orders.write(f"{token} {tool} {seconds}\n".encode())
        self._orders.flush()

    def is_over(self) -> bool:
        """Whether the attack has ended."""
        return bool(select.select([self._reports], [], [], 0)[0])

    def count_answered(self) -> int:
        """Wait for the end of the attack; returns how many calls were answered."""
        line = self._reports.readline()
        if not line:
            raise NotRunning("the attacker has ended")
        return int(line)

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.communicate()


# --- the honest client ------------------------------------------------------------------------------------


class HonestClient:
    """One client that works on, on a connection of its own."""

    def __init__(self, port: int, token: str, machine: RunQueue) -> None:
        headers = b"Authorization: Bearer %b\r\n" % token.encode()
        self._calls = itertools.cycle([(call, call.template(port, STATELESS, headers)) for call in HONEST])
        self._numbers = itertools.count(1_000_000)
        self._machine = machine
        self._socket = socket.create_connection(("127.0.0.1", port), 120.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> float:
        """Make the next call; returns the milliseconds that its answer took without the machine's part."""
        call, template = next(self._calls)
        machine_before = self._machine.waited_ms()
        began = time.perf_counter()
        self._socket.sendall(call.filled(template, next(self._numbers)))
        answer = self._socket.recv(1024 * 1024)
        while answer and not complete(answer):
            answer += self._socket.recv(1024 * 1024)
        took = (time.perf_counter() - began) * 1000
        if not answer.startswith(b"HTTP/1.1 200"):
            raise NotRunning(f"the honest client was answered with {answer[:300]!r}")
        return max(took - (self._machine.waited_ms() - machine_before), 0.0)

    def ask_until(self, is_over: Callable[[], bool]) -> float:
        """Work until it is over; returns the longest wait."""
        longest = 0.0
        while True:
            longest = max(longest, self.ask())
            if is_over():
                return longest
            time.sleep(PAUSE)


# --- the host ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """What one attack did."""

    longest_ms: float
    answered: int
    before: float
    peak: float
    after: float
    """Memory of the host in MB."""


@dataclass
class Row:
    """A tool, called by one token, and what each pass over the table found."""

    tool: str
    token: str
    trials: list[Trial] = field(default_factory=list)

    @property
    def wait_ms(self) -> float:
        """The median of the passes' longest waits."""
        return median(trial.longest_ms for trial in self.trials)

    def list_faults(self, baseline: float) -> list[str]:
        """Say what did not hold; nothing if all of it did."""
        faults = []
        if self.wait_ms > baseline + MOST_MS:
            faults.append(f"another client waited {self.wait_ms:.0f} ms")
        for number, trial in enumerate(self.trials, 1):
            if trial.longest_ms > baseline + MOST_ONCE_MS:
                faults.append(f"pass {number}: another client waited {trial.longest_ms:.0f} ms")
            if not trial.answered:
                faults.append(f"pass {number}: no call was answered")
            if number > 1 and trial.after > trial.before * (1 + MOST_GROWTH):
                faults.append(f"pass {number}: memory went from {trial.before:.0f} to {trial.after:.0f} MB")
        return faults


@dataclass(frozen=True)
class Run:
    """All rows, and what was measured around them."""

    rows: list[Row]
    baseline_ms: float
    memory: list[float]
    """Memory of the host in MB, before the first pass and the lowest after a row of each."""

    def list_faults(self) -> list[str]:
        """Say what did not hold; nothing if all of it did."""
        faults = [
            f"`{row.tool}` ({row.token}), {fault}"
            for row in self.rows
            for fault in row.list_faults(self.baseline_ms)
        ]
        if self.baseline_ms > MOST_MS:  # a host that is stuck from the start would excuse everything
            faults.append(f"before anything was called, the honest client waited {self.baseline_ms:.0f} ms")
        before, after = self.memory[-2:]
        if len(self.memory) > PASSES and after > before * (1 + MOST_GROWTH):
            faults.append(f"in the last pass the lowest memory went from {before:.0f} to {after:.0f} MB")
        return faults


class Tokens:
    """The three callers."""

    def __init__(self, path: Path) -> None:
        file = TokenFile(path)
        self.secrets = {}
        for name, rights in (
            ("reader", {"read_only": True, "may_spend": True}),
            ("writer", {}),
            ("honest", {}),
        ):
            entry, self.secrets[name] = create_token(name, time.time(), **rights)
            file.add(entry)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Process, int, Tokens]]:
    """Run a host with all bridges and their simulated far sides, with something in them."""
    tokens = Tokens(folder / "tokens.json")
    port, game_port = free_port(), free_port()
    _make_files(folder / "game", folder / "aoc")
    # The host has a core to itself, as in `fairness`: otherwise the longest wait is the kernel's.
    core = str((os.cpu_count() or 1) - 1)
    with running() as upstream:
        os.environ |= {
            "AOC_DATA_DIR": str(folder / "aoc"),
            "BITBURNER_LISTEN": f"127.0.0.1:{game_port}",
            "BRIDGEHEAD_STATE_DIR": str(folder / "state"),
            "BRIDGEHEAD_TOKENS_FILE": str(folder / "tokens.json"),
            "BRIDGEHEAD_PROBE_SECONDS": "0",
            "LOG_LEVEL": "error",
            "MCP_SERVER_PORT": str(port),
            "MERCURY_API_KEY": KEY,
            "MERCURY_API_URL": upstream.url,
            "PYTHONPATH": str(ROOT),
            # A limit would only make callers wait; here every call is to cause as much work as it can.
            "RATE_LIMIT_ENABLED": "0",
        }
        with Process(("taskset", "-c", core, sys.executable, "-m", "bridgehead", "serve")) as process:
            wait(process, port)
            url = f"ws://127.0.0.1:{game_port}"
            # It prints each exchange, and a pipe that nobody reads would stop it.
            simulate = f"{sys.executable} -m bridgehead bitburner simulate --url {url} --files {folder}/game"
            with Process(("sh", "-c", f"exec nice -n 5 {simulate} >/dev/null 2>&1")):
                yield process, port, tokens


def _make_files(game: Path, aoc: Path) -> None:
    (game / "scripts").mkdir(parents=True)
    aoc.mkdir()
    (game / "long-line.js").write_text(LONG_LINE)
    (game / "many-lines.txt").write_text("".join(f"line {number} of many\n" for number in range(40_000)))
    for number in range(SCRIPTS):
        following = number % RING + 1
        lines = f'import {{ help }} from "scripts/{following:03}.js";\n' if 0 < number <= RING else ""
        lines += "export async function main(ns) { await ns.hack(ns.args[0]); }\n" * 100
        (game / "scripts" / f"{number:03}.js").write_text(lines)


def ask(port: int, request: bytes) -> bytes:
    """Send one request on a connection of its own; returns the answer's body."""
    with socket.create_connection(("127.0.0.1", port), 60.0) as connection:
        connection.sendall(request)
        answer = b""
        while not complete(answer):
            piece = connection.recv(1024 * 1024)
            if not piece:
                raise NotRunning(f"cut off: {answer[:300]!r}")
            answer += piece
    return answer.partition(b"\r\n\r\n")[2]


def fill(port: int, token: str) -> None:
    """Wait for the game, let it parse its scripts once, and record something for the boards to show."""
    deadline = time.monotonic() + 30
    while b'"state":"connected"' not in ask(port, write_call(port, token, "connection_status", {})):
        if time.monotonic() > deadline:
            raise NotRunning("the simulated game did not connect")
        time.sleep(0.1)
    ask(port, write_call(port, token, "calculate_ram", {"filename": "scripts/001.js"}))
    for number in range(RECORDS):
        arguments: dict[str, Any] = {
            "day": number % 25 + 1,
            "phase": number % 2 + 1,
            "speed_ms": 1000 + number,
        }
        arguments |= {"llm_name": f"model {number % 150}"}
        ask(port, write_call(port, token, "record_speed", arguments))


def _list_tools(port: int, token: str) -> list[str]:
    """List the tools that a token opens."""
    listed = json.loads(ask(port, write_request(port, token, "tools/list", {})))
    return [tool["name"] for tool in listed["result"]["tools"]]


def _attack(process: Process, client: HonestClient, attacker: Attacker, token: str, tool: str) -> Trial:
    before = peak = process.memory()

    def is_over() -> bool:
        nonlocal peak
        peak = max(peak, process.memory())
        return attacker.is_over()

    attacker.start(token, tool, ATTACK_SECONDS)
    longest = client.ask_until(is_over)
    answered = attacker.count_answered()
    deadline = time.monotonic() + SETTLE_SECONDS
    while process.memory() > before * (1 + MOST_GROWTH) and time.monotonic() < deadline:
        time.sleep(0.1)
        longest = max(longest, client.ask())
    return Trial(longest, answered, before, peak, process.memory())


def _list_rows(port: int, tokens: Tokens, only: list[str]) -> list[Row]:
    """List every tool with every token that may call it."""
    open_to = {name: _list_tools(port, tokens.secrets[name]) for name in ("reader", "writer")}
    missing = sorted(set(open_to["writer"]) - set(WORST))
    if missing:
        raise NotRunning(f"worst_arguments.py lacks {', '.join(missing)}")
    # Tools for apps are not listed to this client, and can be called all the same.
    open_to["reader"] += [tool for tool in WORST if tool not in open_to["writer"]]
    open_to["writer"] = list(WORST)
    tools = [tool for tool in WORST if not only or tool in only]
    return [Row(tool, name) for tool in tools for name in open_to if tool in open_to[name]]


def measure(folder: Path, only: list[str], passes: int) -> Run:
    """Attack with every row in turn, several times."""
    with serving(folder) as (process, port, tokens):
        fill(port, tokens.secrets["honest"])
        rows = _list_rows(port, tokens, only)
        run_queue = RunQueue(process.pid, os.getpid())
        client = HonestClient(port, tokens.secrets["honest"], run_queue)
        end = time.monotonic() + BASELINE_SECONDS
        run = Run(rows, client.ask_until(lambda: time.monotonic() > end), [process.memory()])
        with closing(Attacker(port)) as attacker:
            for _ in range(WARM_UPS):
                _attack(process, client, attacker, tokens.secrets["writer"], "write_file")
            for number in range(1, passes + 1):
                for row in rows:
                    trial = _attack(process, client, attacker, tokens.secrets[row.token], row.tool)
                    row.trials.append(trial)
                    print(
                        f"{number} {row.tool} ({row.token}): {trial.longest_ms:.0f} ms, "
                        f"{trial.answered} answered, "
                        f"{trial.before:.0f} → {trial.peak:.0f} → {trial.after:.0f} MB",
                        flush=True,
                    )
                run.memory.append(min(row.trials[-1].after for row in rows))
        return run


def report(run: Run) -> str:
    """Draw the table, and say what did not hold."""
    rows = [
        ["tool", "token", "wait of another client", "longest", "answered", "memory before", "peak", "after"]
    ]
    for row in run.rows:
        last = row.trials[-1]
        rows.append(
            [
                f"`{row.tool}`",
                row.token,
                f"{row.wait_ms:.0f} ms",
                f"{max(trial.longest_ms for trial in row.trials):.0f} ms",
                str(min(trial.answered for trial in row.trials)),
                f"{last.before:.0f} MB",
                f"{max(trial.peak for trial in row.trials):.0f} MB",
                f"{last.after:.0f} MB",
            ]
        )
    before, *after = (f"{memory:.0f}" for memory in run.memory)
    notes = (
        f"command: `make worst`, {datetime.now(UTC):%Y-%m-%d}",
        machine.machine(),
        (
            f"{CONNECTIONS} connections of one token call for {ATTACK_SECONDS:g} s, and every fourth hangs "
            f"up after its call; {len(run.memory) - 1} passes over the whole table, none of them repeated; "
            "the arguments are in `bench/host/worst_arguments.py`"
        ),
        (
            "the other client records speeds and asks for the game's status and mercury's models; alone, "
            f"before anything was called, its longest wait was {run.baseline_ms:.0f} ms"
        ),
        (
            "wait: the median of the longest waits of each pass, and the longest of all, without the time in "
            "which host or client were ready and the machine ran something else (`/proc/PID/schedstat`); "
            "answered: the fewest in a pass; peak: of all passes; memory before and after: in the last pass"
        ),
        (
            f"wanted: a wait of at most {MOST_MS:g} ms more than alone, in no pass {MOST_ONCE_MS:g} ms more, "
            f"some answer in every pass, and memory within {MOST_GROWTH:.0%} of before, of each row from the "
            "second pass on, of the whole in the last"
        ),
        (
            f"memory was {before} MB before the first pass, and at its lowest {', '.join(after)} MB in each: "
            f"{WARM_UPS} writes of long scripts come first, and the first pass loads the rest and fills the "
            "caches; CPython gives an arena of 1 MB back once nothing is left in it, so memory settles at "
            "the level of a peak"
        ),
    )
    faults = run.list_faults()
    verdict = "Reached." if not faults else "**Not reached:**\n\n" + "\n".join(f"- {one}" for one in faults)
    text = "\n\n".join(["# The worst calls", table.draw(rows), verdict, "\n".join(f"- {n}" for n in notes)])
    return text + "\n"


def main() -> int:
    """Measure, print, and, where asked to, write the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.host.worst", description=__doc__)
    parser.add_argument("tool", nargs="*", help="some tools; all by default")
    parser.add_argument("--passes", type=int, default=PASSES, help=f"{PASSES} by default")
    parser.add_argument("--record", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--attack", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        attack_on_demand(options.attack)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if (os.cpu_count() or 1) > 1:  # everything but the host, which has the last core
        os.sched_setaffinity(0, range((os.cpu_count() or 1) - 1))
    with tempfile.TemporaryDirectory() as folder:
        run = measure(Path(folder), options.tool, options.passes)
    text = report(run)
    print("\n" + text)
    if options.record:
        RESULTS.write_text(text)
    return 1 if run.list_faults() else 0


if __name__ == "__main__":
    sys.exit(main())
