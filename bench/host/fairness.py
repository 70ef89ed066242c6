"""The command `python -m bench.host.fairness`: how long one client waits while another takes all it can get.

The same host runs on our server, on uvicorn and on granian. A probe asks for `/healthz` again and again on
one connection while an attack goes on; the longest wait of each round counts, and of these the median.

The server has a core to itself, and the probe goes before the attack on the other one: otherwise the
longest wait is the kernel's, for whom it lets run.
"""

import argparse
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench import machine, table
from bench.host.attacks import ATTACKS, BLOCK_SECONDS, SLOW_READERS
from bench.http import free_port, wait
from bench.load import complete
from bench.peers import HERE
from bench.process import NotRunning, Process, RunQueue
from bridgehead.host.auth.tokens import TokenFile, create_token

ROOT = HERE.parent
RESULTS = HERE / "host" / "FAIRNESS.md"
PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
PAUSE = 0.002
MOST_MS = 50.0
QUIET = "nothing"
TITLES = {
    QUIET: "nobody attacks",
    "flood": "4 MB of pipelined `GET /`, again and again",
    "chunks": "12 MB in one-byte chunks, again and again",
    "slow_readers": "1,000 clients that do not read",
    "blocked_thread": "a tool that blocks, declared `in_thread`",
    "blocked_loop": f"a tool that blocks the loop for {BLOCK_SECONDS * 1000:g} ms",
}
BLOCKS_ALL = "blocked_loop"
"""No server can answer while the process is blocked: here only the comparison counts."""
_ASGI = ("--factory", "bench.host.ours:app", "--host", "127.0.0.1")
SERVERS = {
    "ours": ("-m", "bench.host.ours"),
    "uvicorn": ("-m", "uvicorn", *_ASGI, "--log-level", "critical", "--no-access-log", "--port"),
    "granian": ("-m", "granian", "--interface", "asgi", *_ASGI, "--no-log", "--port"),
}


@dataclass
class Waits:
    """The longest wait of each round, in milliseconds, by attack and server."""

    rounds: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def longest(self, attack: str, server: str) -> float:
        """Return the median of the rounds."""
        return median(self.rounds[attack, server])

    def ratio(self, attack: str) -> float:
        """Return ours divided by the better of the peers."""
        return self.longest(attack, "ours") / min(self.longest(attack, s) for s in SERVERS if s != "ours")

    def is_fair(self, attack: str) -> bool:
        """Tell whether nobody waits long with us, nor longer than with the better of the peers.

        Waits that differ by less than what the probe waits while nobody attacks, or by 1 %, are the same.
        """
        ours = self.longest(attack, "ours")
        better = min(self.longest(attack, server) for server in SERVERS if server != "ours")
        noise = max(self.longest(QUIET, "ours"), better / 100)
        return ours <= better + noise and (ours < MOST_MS or attack == BLOCKS_ALL)

    def table(self) -> str:
        """Draw what was measured."""
        rows = [["longest wait for `/healthz` while", *SERVERS, "ours ÷ better peer", "verdict"]]
        for attack, title in TITLES.items():
            if (attack, "ours") in self.rounds:
                waits = [f"{self.longest(attack, server):.1f} ms" for server in SERVERS]
                verdict = "reached" if self.is_fair(attack) else "**not reached**"
                rows.append([title, *waits, f"{self.ratio(attack):.2f}×", verdict])
        return table.draw(rows)


class Probe:
    """One client with a connection of its own, that wants to know whether the host is well."""

    def __init__(self, port: int, machine: RunQueue) -> None:
        self._machine = machine
        self._socket = socket.create_connection(("127.0.0.1", port), 60.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> float:
        """Ask once; returns how many milliseconds the answer took without the machine's part."""
        machine_before = self._machine.waited_ms()
        began = time.perf_counter()
        self._socket.sendall(PROBE)
        answer = self._socket.recv(65536)
        while answer and not complete(answer):  # a server may send head and body apart
            answer += self._socket.recv(65536)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise NotRunning(f"the probe was answered with {answer[:200]!r}")
        took = (time.perf_counter() - began) * 1000
        return max(took - (self._machine.waited_ms() - machine_before), 0.0)

    def ask_until(self, over: Iterator[bool]) -> float:
        """Ask until it is over; returns the longest wait."""
        longest = 0.0
        for is_over in over:
            longest = max(longest, self.ask())
            if is_over:
                break
            time.sleep(PAUSE)
        return longest


@contextmanager
def serving(server: str) -> Iterator[tuple[Process, int]]:
    """Run the host on one of the servers."""
    port = free_port()
    core = str((os.cpu_count() or 1) - 1)
    with Process(("taskset", "--cpu-list", core, sys.executable, *SERVERS[server], str(port))) as process:
        wait(process, port)
        yield process, port


def measure(attack: str, server: str, token: str, seconds: float) -> float:
    """Attack a new server while a probe asks; returns the longest wait in milliseconds."""
    with serving(server) as (process, port):
        # Granian serves in a child with threads of its own, and the loop of the application is one of them.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        threads = [int(task.name) for child in children for task in Path(f"/proc/{child}/task").iterdir()]
        probe = Probe(port, RunQueue(os.getpid(), process.pid, threads=threads))
        for _ in range(20):
            probe.ask()
        if attack not in ATTACKS:
            end = time.monotonic() + seconds
            return probe.ask_until(time.monotonic() > end for _ in iter(int, 1))
        command = [sys.executable, "-m", "bench.host.attacks", attack, str(port), token, str(seconds)]
        client = subprocess.Popen(
            ["nice", "-n", "10", *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        longest = probe.ask_until(client.poll() is not None for _ in iter(int, 1))
        _, errors = client.communicate()
        if client.returncode:
            raise NotRunning(errors.decode()[-300:])
        if (attack, server) == (BLOCKS_ALL, "ours") and '"tool":"block"' not in process.complaint():
            raise NotRunning(f"the watchdog did not name the tool that blocks: {process.complaint()}")
        return longest


def main() -> int:
    """Measure, print, and, after a whole run, write the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.host.fairness", description=__doc__)
    parser.add_argument("attack", nargs="*", help=f"some of {', '.join(TITLES)}; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long an attack goes on")
    parser.add_argument("--record", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.sched_setaffinity(0, {0})
    with tempfile.TemporaryDirectory() as folder:
        token = _prepare(Path(folder))
        waits = _measure_all(
            [QUIET, *(name for name in options.attack or TITLES if name != QUIET)],
            token,
            options.rounds,
            options.seconds,
        )
    text = _report(waits, options.rounds, options.seconds)
    print("\n" + text)
    if options.record:
        RESULTS.write_text(text)
    return 0 if all(waits.is_fair(attack) for attack, _ in waits.rounds) else 1


def _prepare(folder: Path) -> str:
    """Make a token, and lift the limits for each caller: here one caller is a thousand."""
    entry, token = create_token("bench", 0.0)
    tokens = TokenFile(folder / "tokens.json")
    tokens.add(entry)
    os.environ |= {
        "BRIDGEHEAD_TOKENS_FILE": str(tokens.path),
        "BRIDGEHEAD_STATE_DIR": str(folder / "state"),
        "BRIDGEHEAD_CONNECTIONS": str(4 * SLOW_READERS),  # of which one address may have half
        "LOG_LEVEL": "error",
        "PYTHONPATH": str(ROOT),
    }
    return token


def _measure_all(attacks: list[str], token: str, rounds: int, seconds: float) -> Waits:
    waits = Waits()
    for number in range(rounds):
        for attack in attacks:
            for server in SERVERS:
                found = measure(attack, server, token, seconds)
                waits.rounds.setdefault((attack, server), []).append(found)
                print(f"round {number + 1}, {attack}, {server}: {found:.1f} ms", flush=True)
    return waits


def _report(waits: Waits, rounds: int, seconds: float) -> str:
    facts = machine.facts([])
    notes = (
        f"command: `make bench OF=host.fairness`, {datetime.now(UTC):%Y-%m-%d}",
        facts[0],
        (
            f"{rounds} rounds in turns, {seconds:g} s each; the median of the longest waits of the rounds, "
            "each without the time in which server or probe were ready and the machine ran something else "
            "(`/proc/PID/schedstat`); of granian all threads of its worker together, which favours it"
        ),
        (
            "the same host (`bridgehead.host`, auth on) on each server, in one process; uvicorn with "
            "httptools and uvloop; it has one core, the probe and the attack share the other"
        ),
        (
            f"wanted: under {MOST_MS:g} ms, and never more than the better of the two (less than the probe "
            "waits while nobody attacks, or than 1 %, is noise); while the loop itself is blocked, only the "
            "second"
        ),
    )
    return "\n\n".join(["# Fairness", waits.table(), "\n".join(f"- {note}" for note in notes)]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
