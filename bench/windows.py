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
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import machine
from tests.pythons import __main__ as pythons
from tests.windows.rig import EMBEDDED, ROOT, Rig, as_windows

RESULTS = ROOT / "bench" / "WINDOWS.md"

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
    "params": {"name": "fetch_instruction", "arguments": {"day": 1}},
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
            answer = said.readline()
            assert b'"result"' in answer, answer
            assert b'"isError":true' not in answer, answer

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


def compare(rig: Rig, rounds: int, calls: int) -> dict[str, list[tuple[float, float]]]:
    """Measure both systems in turn, with the same version of Python where this machine has it."""
    found = pythons.find(rig.version)
    python = sys.executable if found is None else str(pythons.set_up(found, rig.version))
    with tempfile.TemporaryDirectory() as folder:
        instructions = Path(folder) / "instructions"
        instructions.mkdir()
        (instructions / "Day01_phase1.md").write_text("Count.", encoding="utf-8")
        words = ["-m", "bridgehead", "aoc"]
        systems = {
            "Linux": ([python, *words], _keep_bytecode(rig, folder)),
            "Wine": (rig.command(*words), _keep_bytecode(rig, as_windows(Path(folder)))),
        }
        for system in systems.values():
            measure(*system, 1)  # the first start compiles
        figures: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
        for _ in range(rounds):
            for name, system in systems.items():
                figures[name].append(measure(*system, calls))
    return figures


def _keep_bytecode(rig: Rig, folder: str) -> dict[str, str]:
    """Return an environment in which the second start is that of an installed program."""
    return rig.environment(AOC_DATA_DIR=folder, PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=folder)


def write_table(figures: dict[str, list[tuple[float, float]]]) -> str:
    """Write the medians and their ratios."""
    starts = {name: statistics.median(start * 1000 for start, _ in of) for name, of in figures.items()}
    rates = {name: statistics.median(rate for _, rate in of) for name, of in figures.items()}
    rows = [
        ("first answer", "{:,.0f} ms", starts),
        ("calls a second, one at a time", "{:,.0f}/s", rates),
    ]
    lines = [
        f"| {what} | {form.format(of['Linux'])} | {form.format(of['Wine'])} "
        f"| {of['Wine'] / of['Linux']:.2f}× |"
        for what, form, of in rows
    ]
    return "\n".join(
        ["| aoc over stdio | Linux | Wine | Wine ÷ Linux |", "| --- | ---: | ---: | ---: |", *lines]
    )


def main() -> None:
    """Measure both and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.windows", description=__doc__)
    parser.add_argument("--python", choices=sorted(EMBEDDED), default="3.13")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--record", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    options = parser.parse_args()
    rig = Rig(options.python)
    rig.set_up()
    table = write_table(compare(rig, options.rounds, options.calls))
    notes = [
        f"command: `python -m bench.windows --record`, {datetime.now(UTC).date().isoformat()}",
        f"medians of {options.rounds} interleaved rounds of {options.calls:,} calls, Python {options.python}",
        "Wine adds its own cost to every process, file and pipe: these are not the figures of Windows",
        machine(),
    ]
    text = "\n\n".join(["# Windows under Wine", table, "\n".join(f"- {note}" for note in notes)]) + "\n"
    print(text)
    if options.record:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
