"""The command `python -m bench.profile_ours`: where the time of one pipelined stdio call goes in ours.

The server runs twice under the standard profiler, with calls and without any; the difference is what calls
cost. A profiler makes small Python functions look dearer than they are, so the shares are what to read: the
time of a call is taken from a run without it.
"""

import pstats
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.peers import SERVERS
from bench.process import NotRunning, Process
from bench.stdio import initialize, pipelined

BURST = 5000
SECONDS = 2.0
TOP = 15
SERVER = (str(SERVERS / "ours.py"), "coroutine", "stdio")


@dataclass(frozen=True)
class Spent:
    """What one function cost in a whole run."""

    times: int
    seconds: float


def main() -> int:
    """Profile, and print the dearest functions."""
    try:
        print(profile(sys.executable))
    except NotRunning as problem:
        print(f"Our server did not run: {problem}", file=sys.stderr)
        return 1
    return 0


def profile(python: str) -> str:
    """Profile our server as this Python runs it; return the dearest functions as a table."""
    plain = 1e6 / _drive((python, *SERVER), SECONDS)
    idle, busy = _profile(python, 0.0), _profile(python, SECONDS)
    nothing = Spent(0, 0.0)
    before = {name: idle.get(name, nothing) for name in busy}
    spent = {
        name: Spent(here.times - before[name].times, here.seconds - before[name].seconds)
        for name, here in busy.items()
    }
    return _table(spent, plain)


def _drive(command: tuple[str, ...], seconds: float) -> float:
    """Run a server, send it bursts of calls for a while, let it end; return calls per second."""
    with Process(command) as process:
        initialize(process)
        with process.within(60.0):
            rate = pipelined(process, seconds, BURST) if seconds else 0.0
            process.finish(10.0)
    return rate


def _profile(python: str, seconds: float) -> dict[str, Spent]:
    """Return what every function of the server cost in a run of this length."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "ours.prof"
        _drive((python, "-m", "cProfile", "-o", str(found), *SERVER), seconds)
        stats = vars(pstats.Stats(str(found)))["stats"]
    return {
        f"{Path(file).name}:{line} {name}" if line else name: Spent(times, own)
        for (file, line, name), (_, times, own, *_) in stats.items()
    }


def _table(spent: dict[str, Spent], plain: float) -> str:
    """Write the dearest functions down, with the profiled shares laid over the plain time of a call."""
    whole = sum(here.seconds for here in spent.values())
    lines = [
        f"One pipelined stdio call of a coroutine takes {plain:.1f} µs without the profiler. Of that:",
        "",
        "| share | about | function |",
        "| ----: | ----: | :------- |",
    ]
    for name, here in sorted(spent.items(), key=lambda item: -item[1].seconds)[:TOP]:
        share = here.seconds / whole
        lines.append(f"| {share:.1%} | {share * plain:.2f} µs | `{name}` |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
