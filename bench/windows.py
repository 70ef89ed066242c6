"""Windows: cold start and calls a second of the aoc bridge over stdio under Wine, as a ratio to Linux.

`python -m bench.windows`. Wine adds its own cost to every process and pipe, so these are not the figures of
Windows; the ratio can be compared from one version to the next.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.windows.rig import EMBEDDED, Rig, as_windows

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "fetch_instruction", "arguments": {"day": 1, "phase": 1}},
}


def measure(command: list[str], environment: dict[str, str], calls: int) -> tuple[float, float]:
    """Return the seconds up to the first answer, and the calls a second after it, one at a time."""
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        given, said = process.stdin, process.stdout
        assert given is not None
        assert said is not None

        def ask(message: dict[str, object]) -> None:
            given.write(json.dumps(message).encode() + b"\n")
            given.flush()
            assert b'"result"' in said.readline()

        ask(INITIALIZE)
        start = time.perf_counter() - began
        ask(CALL)  # the first one loads what the rest need
        began = time.perf_counter()
        for _ in range(calls):
            ask(CALL)
        rate = calls / (time.perf_counter() - began)
        given.close()
        assert process.wait(30) == 0, "the server did not end with its client"
    return start, rate


def main() -> None:
    """Measure both and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.windows", description=__doc__)
    parser.add_argument("--python", choices=sorted(EMBEDDED), default="3.13")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    rig = Rig(options.python)
    rig.set_up()
    with tempfile.TemporaryDirectory() as folder:
        instructions = Path(folder) / "instructions"
        instructions.mkdir()
        (instructions / "Day01_phase1.md").write_text("Count.", encoding="utf-8")
        words = ["-m", "bridgehead", "aoc"]
        systems = {
            "Linux": ([sys.executable, *words], rig.environment(AOC_DATA_DIR=folder)),
            "Wine": (rig.command(*words), rig.environment(AOC_DATA_DIR=as_windows(Path(folder)))),
        }
        found = {
            name: [measure(*system, options.calls) for _ in range(options.rounds)]
            for name, system in systems.items()
        }
    starts = {name: statistics.median(start for start, _ in rounds) for name, rounds in found.items()}
    rates = {name: statistics.median(rate for _, rate in rounds) for name, rounds in found.items()}
    print("| | Linux | Wine | ratio |\n| --- | --- | --- | --- |")
    print(
        f"| first answer | {starts['Linux'] * 1000:.0f} ms | {starts['Wine'] * 1000:.0f} ms | "
        f"{starts['Wine'] / starts['Linux']:.1f} |"
    )
    print(
        f"| calls a second, one at a time | {rates['Linux']:.0f} | {rates['Wine']:.0f} | "
        f"{rates['Wine'] / rates['Linux']:.2f} |"
    )


if __name__ == "__main__":
    main()
