"""What a change costs: two states of this project side by side, in CPU time of the server for each call.

    python -m bench.before_after REVISION

Checks REVISION out beside the working tree, gives both the same run-time dependencies, and measures them in
turns. CPU time is what the kernel counted for the server's threads: other work moves it less than it moves
calls a second. A disturbance can only add to it, so the best rounds are compared beside the medians. Where
even that is too noisy, `bench.instructions` counts instructions.
"""

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench import http, stdio
from bench.mercury.mcp_way import McpWay
from bench.mercury.upstream import KEY, Upstream, running
from bench.message import FIRST_ID, HANDSHAKE, STATELESS, check
from bench.peers import HERE, HOME
from bench.process import Process
from bench.table import draw

ROOT = HERE.parent
CALLS = 3000
BURSTS = 12
CHATS = 400
WORDS = 60
STREAM_WORDS = 2000
UNITS = {
    "cold start": "ms",
    "stdio, one at a time": "µs",
    "stdio, pipelined": "µs",
    "stdio, coroutine, pipelined": "µs",
    "stdio memory": "MB",
    "HTTP, sessions": "µs",
    "HTTP, stateless": "µs",
    "HTTP memory": "MB",
    "mercury call": "µs",
    "mercury piece": "µs",
    "mercury memory": "MB",
}
Samples = dict[str, list[float]]


class Tree:
    """One state of the project, with an interpreter that has what it needs at run time."""

    def __init__(self, title: str, folder: Path) -> None:
        self.title = title
        self.folder = folder
        self._python = _install(HOME / f"tree-{title}", folder)

    def echo(self, *words: str) -> tuple[str, ...]:
        """Return the command of the echo server of this state."""
        return (self._python, str(self.folder / "bench" / "servers" / "ours.py"), *words)

    def mercury(self, upstream: Upstream, *counter: str) -> tuple[str, ...]:
        """Return the command of the mercury bridge of this state, run by a program that counts if given."""
        settings = {
            "MERCURY_API_URL": upstream.url,
            "MERCURY_API_KEY": KEY,
            "RATE_LIMIT_ENABLED": "0",
            "LOG_LEVEL": "error",
        }
        return self.bridge("mercury", *counter, folder=ROOT, **settings)

    def bridge(self, name: str, *counter: str, folder: Path, **settings: str) -> tuple[str, ...]:
        """Return the command of a bridge of this state that runs in a folder."""
        settings |= {"BRIDGEHEAD_STATE_DIR": str(HOME / f"state-{self.title}")}
        pairs = (f"{setting}={value}" for setting, value in settings.items())
        return ("env", f"--chdir={folder}", *pairs, *counter, self._python, "-m", "bridgehead", name)


def main() -> int:
    """Measure both states, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.before_after", description=__doc__)
    parser.add_argument("revision", help="the state to compare with, as git names it")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    trees = both_trees(options.revision)
    samples: dict[str, Samples] = {tree.title: {} for tree in trees}
    with running() as upstream:
        for number in range(options.rounds):
            for tree in trees if number % 2 else reversed(trees):
                for measure, value in _measure(tree, upstream).items():
                    samples[tree.title].setdefault(measure, []).append(value)
            print(f"round {number + 1} of {options.rounds}", flush=True)
    print(_table(samples, options.revision, options.rounds))
    (HOME / "before_after.json").write_text(json.dumps(samples, indent=1))
    return 0


def both_trees(revision: str) -> list[Tree]:
    """Return the state before, checked out beside this one, and this one."""
    return [Tree("before", _checked_out(revision)), Tree("after", ROOT)]


def _measure(tree: Tree, upstream: Upstream) -> dict[str, float]:
    return _stdio(tree) | _http(tree) | _mercury(tree, upstream)


def _stdio(tree: Tree) -> dict[str, float]:
    found: dict[str, float] = {}
    with Process(tree.echo("stdio")) as process:
        stdio.initialize(process)
        found["cold start"] = cpu_seconds(process) * 1e3
        call_in_turn(process, CALLS // 5)
        found["stdio, one at a time"] = _per_call(process, CALLS, lambda: call_in_turn(process, CALLS))
        found["stdio, pipelined"] = _pipelined(process)
        found["stdio memory"] = process.memory()
    with Process(tree.echo("coroutine", "stdio")) as process:
        stdio.initialize(process)
        found["stdio, coroutine, pipelined"] = _pipelined(process)
    return found


def _http(tree: Tree) -> dict[str, float]:
    found: dict[str, float] = {}
    port = http.free_port()
    with Process(tree.echo("http", str(port))) as process:
        http.wait(process, port)
        for measure, era in (("HTTP, sessions", HANDSHAKE), ("HTTP, stateless", STATELESS)):
            load_http(port, era, 0.3)
            begun = cpu_seconds(process)
            calls = load_http(port, era, 1.0)
            found[measure] = (cpu_seconds(process) - begun) / calls * 1e6
        found["HTTP memory"] = process.memory()
    return found


def _mercury(tree: Tree, upstream: Upstream) -> dict[str, float]:
    found: dict[str, float] = {}
    with Process(tree.mercury(upstream)) as process:
        way = McpWay(process)
        way.start()
        for _ in range(CHATS // 5):
            way.chat(WORDS)
        found["mercury call"] = _per_call(process, CHATS, lambda: [way.chat(WORDS) for _ in range(CHATS)])
        way.streams(4, STREAM_WORDS // 10)
        found["mercury piece"] = _per_call(process, 4 * STREAM_WORDS, lambda: way.streams(4, STREAM_WORDS))
        found["mercury memory"] = process.memory()
    return found


def cpu_seconds(process: Process) -> float:
    """Return the CPU time that the kernel has counted for the threads of a process."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _per_call(process: Process, calls: int, work: Callable[[], object]) -> float:
    begun = cpu_seconds(process)
    work()
    return (cpu_seconds(process) - begun) / calls * 1e6


def call_in_turn(process: Process, calls: int) -> None:
    """Make calls over stdio, each after the answer to the one before."""
    os.set_blocking(process.stdin, True)
    for number in range(FIRST_ID, FIRST_ID + calls):
        os.write(process.stdin, stdio.CALL_LINE % (number, number))
        check(stdio.read_line(process), number)


def _pipelined(process: Process) -> float:
    stdio.pipelined(process, 0.2, 500)
    return _per_call(process, BURSTS * 500, lambda: stdio.bursts(process, BURSTS, 500))


def load_http(port: int, era: str, seconds: float) -> float:
    """Call over HTTP for some seconds; return how many calls were answered."""
    words = (sys.executable, "-m", "bench.load", str(port), era, str(seconds), "16")
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    answered: float = json.loads(done.stdout)["answered"]
    return answered


def _checked_out(revision: str) -> Path:
    folder = HOME / "before"
    if folder.exists():
        subprocess.run(["git", "worktree", "remove", "--force", str(folder)], cwd=ROOT, check=True)
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(folder), revision], cwd=ROOT, check=True)
    return folder


def _install(folder: Path, tree: Path) -> str:
    """Make an environment of what a state of the project needs at run time, and put its source there."""
    python = folder / "bin" / "python"
    requirements = tree / "requirements" / "runtime.txt"
    stamp = folder / "installed.txt"
    wanted = f"{tree}\n{requirements.read_text()}"
    if not stamp.is_file() or stamp.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(requirements)]
        subprocess.run(pip, check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "bridgehead.pth").write_text(f"{tree / 'src'}\n")
        stamp.write_text(wanted)
    return str(python)


def _table(samples: dict[str, Samples], revision: str, rounds: int) -> str:
    rows = [["CPU of the server, medians", "before", "after", "after ÷ before", "best ÷ best"]]
    for measure, unit in UNITS.items():
        taken = [samples[title][measure] for title in ("before", "after")]
        before, after = map(median, taken)
        least, least_after = map(min, taken)
        ratios = (f"{after / before:.3f}", f"{least_after / least:.3f}")
        rows.append([f"{measure}, {unit}", f"{before:.1f}", f"{after:.1f}", *ratios])
    return f"{draw(rows)}\n\n`python -m bench.before_after {revision}`, {rounds} rounds in turns"


if __name__ == "__main__":
    sys.exit(main())
