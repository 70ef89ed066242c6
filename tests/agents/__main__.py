"""Run agent CLIs against the bridges: `make agents`, with `ARGS=--write` for the table in docs/clients.md.

Fails when a warning, a next step, a failure or a tool does not reach the model. A client that cannot run is
skipped with the reason; at least two must run.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.agents import table
from tests.agents.clients import CLIENTS, Client, newest
from tests.agents.far_sides import FarSides, SilentApi, far_sides
from tests.agents.scenarios import (
    CANCELLED,
    SCRIPT,
    Outcome,
    how_offered,
    judge,
    missing_tools,
    read_log,
    what_is_shown,
)
from tests.interop.node import node
from tests.support.fake_model import FakeModel, Turn

SECONDS = 120
BRIDGES = ("aoc", "bitburner", "mercury")
AT_LEAST = 2


@dataclass
class Run:
    """One client, and what its model saw."""

    client: Client
    reason: str = ""
    """Why it could not run."""
    revision: str = ""
    offered: str = ""
    shows: str = ""
    shows_instructions: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    first_request: str = ""
    """What the bridges' tools and instructions take in the first request, as JSON."""
    results: str = ""
    seconds: float = 0.0


def play(client: Client, program: str, runtime: str) -> Run:
    """Run the scenarios through one client."""
    run, began = Run(client), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="agents-") as name, ExitStack() as stack:
        home = Path(name)
        model = stack.enter_context(FakeModel(SCRIPT, client.model))
        far = stack.enter_context(far_sides(home / "far"))
        launch = client.prepare(home, model, far.servers)
        process = _start(program, [*launch.arguments, "Do the job."], home, runtime, launch.environment)
        try:
            _, said = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            _end(process)
            run.problems.append(f"did not end within {SECONDS} seconds")
            said = b""
        if not model.turns:
            run.reason = " ".join(said.decode(errors="replace").split())[-200:] or "it asked no model"
            return run
        _judge(run, model.turns, far, model.missing)
    run.problems += _cancel(client, program, runtime)
    run.seconds = time.monotonic() - began
    return run


def _judge(run: Run, turns: list[Turn], far: FarSides, missing: list[str]) -> None:
    run.outcomes = judge(turns, far)
    for outcome in run.outcomes:
        step = outcome.step
        run.problems += [f"{step.bridge}, {step.scenario}: {problem}" for problem in outcome.problems]
    run.problems += [f"tool not found: {name}" for name in (*missing, *missing_tools(turns, far))]
    run.revision = read_log(far, "aoc")[0]
    run.offered, run.shows = how_offered(turns), what_is_shown(turns)
    instructions = [read_log(far, bridge)[3] for bridge in BRIDGES]
    text = turns[0].text + " ".join(one.description for one in turns[0].tools)
    run.shows_instructions = all(words[:60] in text for words in instructions)
    run.first_request = table.visible_part(turns[0], far)
    run.results = "\n".join(turns[-1].results)


def _cancel(client: Client, program: str, runtime: str) -> list[str]:
    """Interrupt the client while the API works; the API must see the request end."""
    api = SilentApi()
    with tempfile.TemporaryDirectory(prefix="agents-") as name, ExitStack() as stack:
        home = Path(name)
        model = stack.enter_context(FakeModel(CANCELLED, client.model))
        far = stack.enter_context(far_sides(home / "far", api=stack.enter_context(api.running())))
        launch = client.prepare(home, model, far.servers)
        process = _start(program, [*launch.arguments, "Do the job."], home, runtime, launch.environment)
        try:
            if not api.asked.wait(SECONDS):
                return ["cancellation: the API was never asked"]
            process.send_signal(signal.SIGINT)
            if not api.left.wait(SECONDS):
                return ["cancellation: the request to the API went on"]
        finally:
            _end(process)
    return []


def _start(
    program: str, arguments: list[str], home: Path, runtime: str, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    work = home / "work"
    work.mkdir()
    path = f"{Path(runtime).parent}:/usr/bin:/bin"
    return subprocess.Popen(
        [program, *arguments],
        cwd=work,
        env={"HOME": str(home), "PATH": path, "NO_COLOR": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a client with all that it started: they share the session that it began."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(5)
    except ProcessLookupError:
        pass
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def main() -> int:
    """Run every client; return the exit status."""
    parser = argparse.ArgumentParser(prog="make agents", description=__doc__)
    parser.add_argument("--newest", action="store_true", help="the newest versions on npm")
    parser.add_argument("--write", action="store_true", help="write the table into docs/clients.md")
    parser.add_argument("--only", default="", help="clients by program, separated by commas")
    options = parser.parse_args()
    runtime = node()
    chosen = [one for one in CLIENTS if not options.only or one.program in options.only.split(",")]
    if options.newest:
        chosen = [replace(one, package=newest(one.package)) for one in chosen]

    def install(client: Client) -> str:
        try:
            client.install(runtime)
        except (SystemExit, OSError, subprocess.SubprocessError) as problem:
            return f"it cannot be installed: {problem}"[:300]
        return ""

    def run_one(client: Client) -> Run:
        if reasons[client.package]:
            return Run(client, reasons[client.package])
        run = play(client, client.path, runtime)
        print(f"{client.name} {client.package.version}: {run.seconds:.0f} s", flush=True)
        return run

    # Two at a time: they mostly wait, for each other's processes to start.
    with ThreadPoolExecutor(2) as pool:
        by_package = {one.package: one for one in chosen}
        reasons = dict(zip(by_package, pool.map(install, by_package.values()), strict=True))
        runs = list(pool.map(run_one, chosen))
    rows = table.make([run for run in runs if not run.reason], runtime)
    print(f"\n{rows}\n")
    for run in runs:
        if run.reason:
            print(f"skipped {run.client.name} {run.client.package.version}: {run.reason}")
        for problem in run.problems:
            print(f"FAILED {run.client.name}: {problem}")
    if options.write:
        table.write(rows)
    played = sum(not run.reason for run in runs)
    if played < min(AT_LEAST, len(chosen)):
        print(f"FAILED: {played} clients ran; at least {AT_LEAST} must")
        return 1
    return int(any(run.problems for run in runs))


if __name__ == "__main__":
    sys.exit(main())
