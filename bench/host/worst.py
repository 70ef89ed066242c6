"""The command `python -m bench.host.worst`: every tool with its worst arguments, beside an honest client.

A host with all bridges serves three tokens. Two of them, one read-only and one that may write, call each tool
with the worst arguments that it accepts (`worst_arguments`), on several connections, some of which hang up at
once. The third token goes on with its own work meanwhile. The exit status is 1 where that client waits more
than 250 ms longer than while nobody attacks, or where the memory of the host does not return.
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
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import machine, table
from bench.host.calls import STATELESS, Call, post
from bench.host.worst_arguments import LONG_LINE, SCRIPTS, WORST
from bench.http import free_port, wait
from bench.load import complete
from bench.mercury.upstream import KEY, running
from bench.peers import HERE
from bench.process import NotRunning, Process
from bridgehead.host.auth.tokens import TokenFile, create_token

ROOT = HERE.parent
RESULTS = HERE / "host" / "WORST.md"
CONNECTIONS = 8
"""Connections of an attacker; every fourth hangs up as soon as it has sent its call."""
ATTACK_SECONDS = 0.5
WARM_UP_SECONDS = 0.2
LAST_SECONDS = 0.5
"""How long the last calls of an attack may take."""
HANG_UP_PAUSE = 0.05
PAUSE = 0.005
TRIES = 3
"""What fails has to do so every time: other processes of the machine make one wait too, and a first large
call takes memory that the next one uses again. A leak grows with each try."""
MOST_MS = 250.0
MOST_GROWTH = 0.10
SETTLE_SECONDS = 3.0
"""How long memory may take to return."""
RECORDS = 400
HONEST = (
    Call("/mcp", "record_speed", b'{"day":1,"phase":1,"llm_name":"honest","speed_ms":%d}'),
    Call("/mcp", "connection_status", b"{}", b"content"),
    Call("/mcp", "mercury_list_models", b"{}", b"content"),
)
"""What the honest client does in turns: a write to the disk in a thread, and two answers from memory."""


_META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "worst", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def write_request(port: int, token: str, method: str, params: dict[str, Any]) -> bytes:
    """Write a request of the stateless era."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": _META, **params}}
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
                    answered += answer.startswith(b"HTTP/1.1 200")
                finally:
                    writer.close()
            if number % 4 == 3:  # a flood of requests is what `fairness` measures
                await asyncio.sleep(HANG_UP_PAUSE)

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds + LAST_SECONDS):
            await asyncio.gather(*(press(number) for number in range(CONNECTIONS)))
    return answered


def attack_on_demand(port: int) -> None:
    """Read a token, a tool and seconds from each line, attack, and print how many calls were answered."""
    for line in sys.stdin:
        token, tool, seconds = line.split()
        print(asyncio.run(attack(port, token, tool, float(seconds))), flush=True)


class Attacker:
    """The process of the attacks: one for all of them, because its start would take longer than an attack."""

    def __init__(self, port: int) -> None:
        command = ("nice", "-n", "10", sys.executable, "-m", "bench.host.worst", "--attack", str(port))
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

    def __init__(self, port: int, token: str) -> None:
        headers = b"Authorization: Bearer %b\r\n" % token.encode()
        self._calls = itertools.cycle([(call, call.template(port, STATELESS, headers)) for call in HONEST])
        self._numbers = itertools.count(1_000_000)
        self._socket = socket.create_connection(("127.0.0.1", port), 120.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> float:
        """Make the next call; returns how many milliseconds its answer took."""
        call, template = next(self._calls)
        began = time.perf_counter()
        self._socket.sendall(call.filled(template, next(self._numbers)))
        answer = self._socket.recv(1024 * 1024)
        while answer and not complete(answer):
            answer += self._socket.recv(1024 * 1024)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise NotRunning(f"the honest client was answered with {answer[:300]!r}")
        return (time.perf_counter() - began) * 1000

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

    tool: str
    token: str
    longest_ms: float
    answered: int
    before: float
    peak: float
    after: float
    """Memory of the host in MB."""
    tries: int = 1

    def is_fair(self, baseline: float) -> bool:
        """Tell whether the other client waited no longer than it may."""
        return self.longest_ms <= baseline + MOST_MS

    @property
    def returns_memory(self) -> bool:
        """Whether memory is back to what it was."""
        return self.after <= self.before * (1 + MOST_GROWTH)


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
        lines = f'import {{ help }} from "scripts/{(number + 1) % SCRIPTS:03}.js";\n'
        lines += "export async function main(ns) { await ns.hack(ns.args[0]); }\n" * 100
        (game / "scripts" / f"{number:03}.js").write_text(lines)


def _ask(port: int, request: bytes) -> bytes:
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


def _warm_up(port: int, tokens: Tokens, attacker: Attacker, tools: list[str]) -> None:
    """Load what is loaded once, and fill what is kept: the memory after that is the baseline."""
    writer = tokens.secrets["writer"]
    deadline = time.monotonic() + 30
    while b'"isError":true' in _ask(port, write_call(port, writer, "list_files", {})):
        if time.monotonic() > deadline:
            raise NotRunning("the simulated game did not connect")
        time.sleep(0.1)
    for number in range(RECORDS):
        arguments: dict[str, Any] = {
            "day": number % 25 + 1,
            "phase": number % 2 + 1,
            "speed_ms": 1000 + number,
        }
        arguments |= {"llm_name": f"model {number % 150}"}
        _ask(port, write_call(port, writer, "record_speed", arguments))
    for tool in tools:
        attacker.start(writer, tool, WARM_UP_SECONDS)
        attacker.count_answered()


def _list_tools(port: int, token: str) -> list[str]:
    """List the tools that a token opens."""
    listed = json.loads(_ask(port, write_request(port, token, "tools/list", {})))
    return [tool["name"] for tool in listed["result"]["tools"]]


class Trials:
    """Attacks on one host, one after the other."""

    def __init__(self, process: Process, client: HonestClient, attacker: Attacker, baseline: float) -> None:
        self._process = process
        self._client = client
        self._attacker = attacker
        self._baseline = baseline

    def run(self, token: tuple[str, str], tool: str) -> Trial:
        """Attack until both the wait and the memory have held once, at most three times."""
        trial = self._attack(token, tool)
        for number in range(2, TRIES + 1):
            if trial.is_fair(self._baseline) and trial.returns_memory:
                break
            again = self._attack(token, tool)
            # Each has to hold in some try: the shorter wait stays, and of memory the try that gave it back.
            kept = trial if trial.returns_memory else again
            trial = replace(kept, longest_ms=min(trial.longest_ms, again.longest_ms), tries=number)
        return trial

    def _attack(self, token: tuple[str, str], tool: str) -> Trial:
        process, attacker = self._process, self._attacker
        before = peak = process.memory()

        def is_over() -> bool:
            nonlocal peak
            peak = max(peak, process.memory())
            return attacker.is_over()

        attacker.start(token[1], tool, ATTACK_SECONDS)
        longest = self._client.ask_until(is_over)
        answered = attacker.count_answered()
        deadline = time.monotonic() + SETTLE_SECONDS
        while process.memory() > before * (1 + MOST_GROWTH) and time.monotonic() < deadline:
            time.sleep(0.1)
            self._client.ask()
        return Trial(tool, token[0], longest, answered, before, peak, process.memory())


def measure(folder: Path, only: list[str]) -> tuple[list[Trial], float, float, float]:
    """Try every tool; returns the trials, the baseline wait, and the first and last memory."""
    with serving(folder) as (process, port, tokens):
        open_to = {name: _list_tools(port, tokens.secrets[name]) for name in ("reader", "writer")}
        missing = sorted(set(open_to["writer"]) - set(WORST))
        if missing:
            raise NotRunning(f"worst_arguments.py lacks {', '.join(missing)}")
        # Tools for apps are not listed to this client, and can be called all the same.
        open_to["reader"] += [tool for tool in WORST if tool not in open_to["writer"]]
        open_to["writer"] = list(WORST)
        tools = [tool for tool in WORST if not only or tool in only]
        with closing(Attacker(port)) as attacker:
            _warm_up(port, tokens, attacker, tools)
            client = HonestClient(port, tokens.secrets["honest"])
            end = time.monotonic() + 3.0
            baseline = client.ask_until(lambda: time.monotonic() > end)
            first = process.memory()
            one_by_one = Trials(process, client, attacker, baseline)
            trials = []
            for tool in tools:
                for name, opened in open_to.items():
                    if tool in opened:
                        trial = one_by_one.run((name, tokens.secrets[name]), tool)
                        trials.append(trial)
                        print(
                            f"{tool} ({name}): {trial.longest_ms:.0f} ms, {trial.answered} answered, "
                            f"{trial.before:.0f} → {trial.peak:.0f} → {trial.after:.0f} MB, "
                            f"{trial.tries} tries",
                            flush=True,
                        )
            return trials, baseline, first, process.memory()


def report(trials: list[Trial], baseline: float, first: float, last: float) -> tuple[str, bool]:
    """Draw the table; returns whether everything held."""
    rows = [["tool", "token", "longest wait of another client", "answered", "memory before", "peak", "after"]]
    is_good = last <= first * (1 + MOST_GROWTH)
    for trial in trials:
        waits, returns = trial.is_fair(baseline), trial.returns_memory
        is_good = is_good and waits and returns
        rows.append(
            [
                f"`{trial.tool}`",
                trial.token,
                f"{trial.longest_ms:.0f} ms" if waits else f"**{trial.longest_ms:.0f} ms**",
                str(trial.answered),
                f"{trial.before:.0f} MB",
                f"{trial.peak:.0f} MB",
                f"{trial.after:.0f} MB" if returns else f"**{trial.after:.0f} MB**",
            ]
        )
    notes = (
        f"command: `make worst`, {datetime.now(UTC):%Y-%m-%d}",
        machine.machine(),
        (
            f"{CONNECTIONS} connections of one token for {ATTACK_SECONDS:g} s each, every fourth of which "
            "hangs up after its call; what fails is tried up to three times; the arguments are in "
            "`bench/host/worst_arguments.py`"
        ),
        (
            "the other client records speeds and asks for the game's status and mercury's models; alone, its "
            f"longest wait is {baseline:.0f} ms"
        ),
        (
            f"wanted: at most {MOST_MS:g} ms more than that, and memory within {MOST_GROWTH:.0%} of before; "
            f"over the whole run it went from {first:.0f} to {last:.0f} MB"
        ),
    )
    verdict = "Reached." if is_good else "**Not reached.**"
    text = "\n\n".join(["# The worst calls", table.draw(rows), verdict, "\n".join(f"- {n}" for n in notes)])
    return text + "\n", is_good


def main() -> int:
    """Measure, print, and, where asked to, write the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.host.worst", description=__doc__)
    parser.add_argument("tool", nargs="*", help="some tools; all by default")
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
        text, is_good = report(*measure(Path(folder), options.tool))
    print("\n" + text)
    if options.record:
        RESULTS.write_text(text)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
