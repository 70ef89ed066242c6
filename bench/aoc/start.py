"""Cold start: from spawning a server to having read its first `fetch_instruction` answer.

Ours runs with what it needs at run time and no more, as a user has it.
"""

import json
import os
import sys
import time
from pathlib import Path
from statistics import median

from bench.message import INITIALIZE, INITIALIZED, WrongAnswer
from bench.peers import install_ours
from bench.process import NotRunning, Process

LIMIT = 30.0
CALL = (
    b'{"jsonrpc":"2.0","id":2,"method":"tools/call",'
    b'"params":{"name":"fetch_instruction","arguments":{"day":1}}}\n'
)
OURS = "import sys; sys.argv[1:] = ['aoc']; from bridgehead.cli import main; sys.exit(main())"
PUZZLE = "Count the gulls on the quay.\n" * 40


def measured(folder: Path, rounds: int) -> tuple[float, float]:
    """Start each server several times, in turns; return the medians in milliseconds, ours first."""
    (folder / "instructions").mkdir(exist_ok=True)
    for phase in (1, 2):
        (folder / "instructions" / f"Day01_phase{phase}.md").write_text(PUZZLE)
    os.environ["AOC_DATA_DIR"] = str(folder)
    peer = (sys.executable, str(Path(__file__).parent / "servers" / "sdk.py"), str(folder))
    ours = (str(install_ours()), "-c", OURS)
    samples: dict[tuple[str, ...], list[float]] = {ours: [], peer: []}
    for _ in range(rounds):
        for command, found in samples.items():
            found.append(_first_answer(command) * 1000)
    return median(samples[ours]), median(samples[peer])


def _first_answer(command: tuple[str, ...]) -> float:
    """Start a server as a client does: shake hands, then call; return the seconds to the call's answer."""
    with Process(command) as process, process.within(LIMIT):
        os.write(process.stdin, INITIALIZE + b"\n")
        rest = _line(process, b"")[1]
        os.write(process.stdin, INITIALIZED + b"\n" + CALL)
        answer, _ = _line(process, rest)
        seconds = time.perf_counter() - process.started
    text = json.loads(answer)["result"]["content"][0]["text"]
    if text != f"# Day 1\n\n## Phase 1\n{PUZZLE}\n\n## Phase 2\n{PUZZLE}":
        raise WrongAnswer(f"wrong text: {text[:200]!r}")
    return seconds


def _line(process: Process, rest: bytes) -> tuple[bytes, bytes]:
    """Read one line; return it and what came after it."""
    while b"\n" not in rest:
        chunk = os.read(process.stdout, 65536)
        if not chunk:
            raise NotRunning(process.complaint())
        rest += chunk
    line, _, rest = rest.partition(b"\n")
    return line, rest
