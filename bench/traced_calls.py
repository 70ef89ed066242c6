"""How far a call goes: the distinct functions and files of bridgehead that four calls enter, and the frames.

    python -m bench.traced_calls [--list]

Each server runs with `sys.setprofile` in all its threads and is warm: the call is made twice before the one
that is counted, so that nothing is counted that happens only once. `--list` names the functions too.
Comprehensions, lambdas and nested functions count as functions of their own: CPython has a code object for
each. Left out is what runs with or without a call (`BACKGROUND`): once a second the aoc bridge looks at its
folders, and the host at its tokens and its idle connections. Whether that falls into the counted call is
chance. For the same reason an HTTP request is one write on a kept connection: whether its body arrives with
its head would be chance too.
"""

import argparse
import json
import os
import runpy
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from bench.http import free_port
from bench.mercury.upstream import KEY, MODEL, running
from bench.process import NotRunning, Process
from bench.table import draw

SOURCE = str(Path(__file__).resolve().parents[1] / "src" / "bridgehead") + os.sep
SERVER = "--server"
SETTLE_SECONDS = 0.5
"""After a call, until what follows its answer (a line of the log, a flush) is over."""
START_SECONDS = 60.0
BACKGROUND = {
    ("aoc/bridge.py", "make_bridge.<locals>.lifespan.<locals>.prepare"),
    ("aoc/files/watching.py", "watch"),
    ("aoc/workspace.py", "Workspace._unrecorded_attempts"),  # in a thread, so not below `prepare`
    ("host/auth/revocation.py", "TokenWatch.run"),
    ("host/dashboard/dashboard.py", "Dashboard.run"),
    ("host/telemetry/access_log.py", "AccessLog.run"),
    ("mcp/http/server/connections.py", "Connections._sweep"),
}
"""Coroutines and timers by file and function; neither they nor what they call is counted."""
Call = Callable[[str, dict[str, Any]], dict[str, Any]]


# --- in the server --------------------------------------------------------------------------------------


def serve(control: str, words: list[str]) -> None:
    """Run `bridgehead WORDS`, count what is entered, and tell the counts over a Unix socket.

    Each connection gets what was entered since the one before it, as JSON: frames by file and function.
    """
    entered: dict[tuple[str, str], int] = {}

    def name(code: CodeType) -> tuple[str, str]:
        return code.co_filename[len(SOURCE) :], code.co_qualname

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(SOURCE):
            return
        caller: FrameType | None = frame
        while caller is not None:
            if name(caller.f_code) in BACKGROUND:
                return
            caller = caller.f_back
        key = name(frame.f_code)
        entered[key] = entered.get(key, 0) + 1

    listening = socket.socket(socket.AF_UNIX)
    listening.bind(control)
    listening.listen()

    def tell() -> None:
        while True:
            asker, _ = listening.accept()
            with asker:
                found = [(*key, frames) for key, frames in sorted(entered.items())]
                entered.clear()
                asker.sendall(json.dumps(found).encode())

    # Begun before threads are profiled, so that it does not count itself.
    threading.Thread(target=tell, daemon=True).start()
    threading.setprofile(profile)
    sys.setprofile(profile)
    sys.argv = ["bridgehead", *words]
    runpy.run_module("bridgehead", run_name="__main__", alter_sys=True)


# --- around it ------------------------------------------------------------------------------------------


def entered_since(control: Path) -> list[tuple[str, str, int]]:
    """Return what the server entered since the last time."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(control))
        with asking.makefile("rb") as answer:
            return [tuple(row) for row in json.loads(answer.read())]


@contextmanager
def traced(folder: Path, *words: str, **settings: str) -> Iterator[tuple[Process, Path]]:
    """Run a traced server in a folder of its own, with these settings alone."""
    control = folder / "control"
    # Without AOC_DATA_DIR the records would go to the user's own.
    own = {"BRIDGEHEAD_STATE_DIR": str(folder / "state"), "AOC_DATA_DIR": str(folder)}
    settings |= own | {"LOG_LEVEL": "error"}
    path = os.pathsep.join(filter(None, sys.path))
    pairs = [f"{name}={value}" for name, value in ({"PYTHONPATH": path} | settings).items()]
    command = (sys.executable, "-m", "bench.traced_calls", SERVER, str(control), *words)
    with (
        Process(("env", f"--chdir={folder}", *pairs, *command)) as process,
        process.within(START_SECONDS * 3),
    ):
        yield process, control


def over_stdio(process: Process) -> Call:
    """Do the handshake and return what calls a tool."""
    output = os.fdopen(process.stdout, "rb", closefd=False)
    numbers = iter(range(1, 10_000))

    def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        os.write(process.stdin, json.dumps(message).encode() + b"\n")
        for line in output:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == number:
                return answer
        raise NotRunning(process.complaint())

    client = {"name": "bench", "version": "1"}
    request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
    os.write(process.stdin, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    return lambda tool, arguments: request("tools/call", {"name": tool, "arguments": arguments})


def over_http(process: Process, port: int) -> Call:
    """Return what calls a tool without a session (revision 2026-07-28)."""
    connections: list[socket.socket] = []

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"_meta": meta, "name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        body = json.dumps(message)
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        if not process.alive:
            raise NotRunning(process.complaint())
        if not connections:
            connections.append(socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS))
        connections[0].sendall((head + body).encode())
        answer = HTTPResponse(connections[0])
        answer.begin()
        found: dict[str, Any] = json.loads(answer.read())
        return found

    return call


def count(
    call: Call, control: Path, tool: str, arguments: Callable[[int], dict[str, Any]]
) -> list[tuple[str, str, int]]:
    """Call until it works, once more, and then count one call."""
    deadline = time.monotonic() + START_SECONDS
    for number in range(1, 10_000):
        try:
            answer = call(tool, arguments(number))
        except ConnectionRefusedError:  # it does not listen yet
            answer = {}
        if "result" in answer and not answer["result"].get("isError"):
            break
        if time.monotonic() > deadline:
            raise NotRunning(f"{tool} did not work: {json.dumps(answer)[:300]}")
        time.sleep(0.1)
    call(tool, arguments(number + 1))
    time.sleep(SETTLE_SECONDS)
    entered_since(control)
    call(tool, arguments(number + 2))
    time.sleep(SETTLE_SECONDS)
    return entered_since(control)


def trace_all(folder: Path) -> dict[str, list[tuple[str, str, int]]]:
    """Trace the four calls, each in a server of its own."""
    found = {}
    folders = iter([folder / name for name in ("mercury", "bitburner", "aoc", "host")])

    def home() -> Path:
        made = next(folders)
        made.mkdir()
        return made

    def record(number: int) -> dict[str, Any]:
        return {"day": 1, "phase": 1, "llm_name": "bench", "speed_ms": number}

    with (
        running() as upstream,
        traced(home(), "mercury", MERCURY_API_URL=upstream.url, MERCURY_API_KEY=KEY) as (server, control),
    ):
        found["mercury_chat_completion, stdio"] = count(
            over_stdio(server),
            control,
            "mercury_chat_completion",
            # Another question each time: an answer from the cache would end early.
            lambda number: {"model": MODEL, "messages": [{"role": "user", "content": f"Tell {number}."}]},
        )
    address = f"127.0.0.1:{free_port()}"
    game = (sys.executable, "-m", "bridgehead", "bitburner", "simulate", "--url", f"ws://{address}")
    with (
        traced(home(), "bitburner", BITBURNER_LISTEN=address) as (server, control),
        Process(game),
    ):
        found["write_file, stdio"] = count(
            over_stdio(server),
            control,
            "write_file",
            lambda number: {"filename": "traced.js", "content": f"export const number = {number};\n"},
        )
    with traced(home(), "aoc") as (server, control):
        found["record_speed, stdio"] = count(over_stdio(server), control, "record_speed", record)
    port = free_port()
    with traced(home(), "serve", "--bridges", "aoc", "--port", str(port)) as (server, control):
        found["record_speed, HTTP"] = count(over_http(server, port), control, "record_speed", record)
    return found


def main() -> int:
    """Trace the calls and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.traced_calls", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the functions, by call and file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = trace_all(Path(folder))
    if options.list:
        for title, rows in found.items():
            print(f"{title}\n" + "".join(f"  {file}:{name} {frames}\n" for file, name, frames in rows))
    table = [["call", "functions", "files", "frames"]]
    for title, rows in found.items():
        files = {file for file, _, _ in rows}
        table.append([title, str(len(rows)), str(len(files)), str(sum(frames for *_, frames in rows))])
    print(draw(table))
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == [SERVER]:
        serve(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
