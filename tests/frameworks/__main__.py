"""The clients of agent frameworks against a real bridge: `python -m tests.frameworks`.

Makes an environment for each client on the first run, runs the snippet that docs/clients.md shows, and prints
a line for each. Exits with 1 if one failed. `--ci` tries the clients that every change has to work with,
`--write` writes the page, and `--only TEXT` tries the clients with this in their name.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.frameworks.converters import convert_tools, describe
from tests.frameworks.environments import Client, InstallError, read_clients
from tests.frameworks.page import ADDRESS, TRANSPORTS, find_programs, write_results
from tests.interop.server_process import listening
from tests.support.ports import free_port

PUZZLE = "Count the gulls."
REFUSAL = "day must be between 1 and 25 (got 26)"
LIMIT_SECONDS = 180


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.frameworks")
    parser.add_argument("--ci", action="store_true", help="only those that every change has to work with")
    parser.add_argument("--only", default="", metavar="TEXT", help="only those with this in their name")
    parser.add_argument("--write", action="store_true", help="write docs/clients.md with what was found")
    wanted = parser.parse_args()
    clients = [one for one in read_clients() if wanted.only in one.name and (one.ci or not wanted.ci)]
    results = {
        (client, transport): try_client(client, transport, program)
        for client in clients
        for transport, program in find_programs(client.section).items()
        if transport not in client.lacks
    }
    converted = None if wanted.only else convert_tools()
    if converted is not None:
        print(describe(converted), flush=True)
    if wanted.write and converted is not None:
        write_results(results, converted)
    failed = [problem for problem in results.values() if problem]
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not results or (converted is not None and converted.refused) else 0


def try_client(client: Client, transport: str, program: str) -> str:
    """Run a client's snippet over a transport; returns what is wrong, or nothing."""
    started = time.monotonic()
    try:
        problem = _try(client, program)
    except subprocess.TimeoutExpired:
        problem = f"takes longer than {LIMIT_SECONDS} s"
    outcome = f"failed: {problem}" if problem else "ok"
    seconds = time.monotonic() - started
    print(f"{outcome:8}{client.name} {client.version}, {TRANSPORTS[transport]} ({seconds:.0f} s)", flush=True)
    return problem


def _try(client: Client, program: str) -> str:
    try:
        interpreter, folder = client.prepare()
    except InstallError as error:
        return f"does not install: {error}"
    for name, other in client.renamed:
        program = program.replace(name, other)
    with tempfile.TemporaryDirectory() as home:
        puzzles = Path(home, "data", "instructions")
        puzzles.mkdir(parents=True)
        (puzzles / "Day01_phase1.md").write_text(PUZZLE, encoding="utf-8")
        environment = _environment(Path(home), folder)
        with _hosting(environment) if ADDRESS in program else nullcontext(ADDRESS) as address:
            snippet = folder / ("snippet.mjs" if client.npm else "snippet.py")
            snippet.write_text(program.replace(ADDRESS, address), encoding="utf-8")
            done = subprocess.run(
                [interpreter, str(snippet)],
                cwd=home,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT_SECONDS,
                check=False,
            )
    if done.returncode or "Traceback" in done.stderr:
        return (done.stderr or done.stdout).strip()[-800:]
    missing = [text for text in _expected(client) if text not in done.stdout]
    return f"does not show {missing}: {done.stdout[-500:]}" if missing else ""


@contextmanager
def _hosting(environment: dict[str, str]) -> Iterator[str]:
    """Serve the bridge over HTTP too, and give the address."""
    port = free_port()
    command = [sys.executable, "-m", "bridgehead", "serve", "--bridges", "aoc", "--port", str(port)]
    with listening(command, port, {**environment, "LOG_LEVEL": "error"}) as address:
        yield address


def _environment(home: Path, folder: Path) -> dict[str, str]:
    """Give what a snippet needs, with the commands of both sides, and no word to anybody's telemetry."""
    commands = (Path(sys.executable).parent, folder / "node_modules" / ".bin", folder / "bin")
    return {
        "AOC_DATA_DIR": str(home / "data"),
        "BRIDGEHEAD_STATE_DIR": str(home / "state"),
        "PATH": os.pathsep.join([*map(str, commands), os.environ["PATH"]]),
        "HOME": str(home),
        "MCP_USE_ANONYMIZED_TELEMETRY": "false",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_DISABLE_TRACKING": "true",
        "OTEL_SDK_DISABLED": "true",
        "OPENAI_API_KEY": "none",
        "NODE_OPTIONS": "--experimental-eventsource",  # TypeScript SDK 1.0 takes the one of its platform
    }


def _expected(client: Client) -> list[str]:
    return [" tools", PUZZLE, *([REFUSAL] if client.shows_errors else [])]


if __name__ == "__main__":
    raise SystemExit(main())
