"""The command `python -m bench.tasks`: create a task, ask until it is completed, again and again.

One client, one connection, no pause between two questions: the time is that of the servers. Every server has
its turn in each round; the table has the medians over all.
"""

import argparse
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.peers import HOME, NotInstalled, install_ours, install_python

HERE = Path(__file__).resolve().parent
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
START_SECONDS = 60.0
MOST_POLLS = 100_000


class Server:
    """A running server, and the one connection to it."""

    def __init__(self, title: str, command: list[str], stack: ExitStack) -> None:
        self.title = title
        self.created: list[float] = []
        self.completed: list[float] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [word.replace("PORT", str(port)) for word in command]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(self._end)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._connection.connect()
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return

    def _end(self) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.wait(10)

    def measure(self, count: int) -> None:
        """Make tasks one after the other, over a new connection: an idle one may have been closed."""
        self._connection.close()
        self._connection.connect()
        for _ in range(count):
            began = time.perf_counter()
            task_id = self._ask("tools/call", "answer", {"name": "answer", "arguments": {}})["taskId"]
            self.created.append(time.perf_counter() - began)
            for _ in range(MOST_POLLS):
                if self._ask("tasks/get", task_id, {"taskId": task_id})["status"] == "completed":
                    break
            self.completed.append(time.perf_counter() - began)

    def _ask(self, method: str, name: str, params: dict[str, Any]) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Mcp-Name": name,
        }
        self._connection.request("POST", "/mcp", json.dumps(body), headers)
        text = self._connection.getresponse().read().decode()
        if not text.startswith("{"):  # an event stream with the answer as its last event
            text = [line[6:] for line in text.splitlines() if line.startswith("data: ")][-1]
        answer = json.loads(text)
        if "error" in answer:
            raise SystemExit(f"{self.title}: {answer['error']}")
        return answer["result"]


def start_servers(stack: ExitStack) -> list[Server]:
    """Start every server that can be had, ours first."""
    ours = str(install_ours())
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    servers = [
        Server("Bridgehead, in memory", [ours, str(HERE / "ours.py"), "PORT"], stack),
        Server("Bridgehead, in a SQLite file", [ours, str(HERE / "ours.py"), "PORT", folder], stack),
    ]
    try:
        python = install_python(HOME / "tasks", HERE / "peers.txt")
    except NotInstalled as problem:
        print(f"fastmcp-tasks is left out: {problem}", file=sys.stderr)
        return servers
    command = [str(python), str(HERE / "fastmcp_peer.py"), "PORT"]
    return [*servers, Server("fastmcp-tasks, in memory", command, stack)]


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.tasks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tasks", type=int, default=100, help="tasks of each server in a round")
    options = parser.parse_args()
    with ExitStack() as stack:
        servers = start_servers(stack)
        for server in servers:  # up to speed
            server.measure(20)
            server.created.clear()
            server.completed.clear()
        for _ in range(options.rounds):
            for server in servers:
                server.measure(options.tasks)
    print("| server | created | completed seen | slowest of a hundred |")
    print("| --- | --- | --- | --- |")
    for server in servers:
        created, completed = (statistics.median(times) * 1000 for times in (server.created, server.completed))
        slowest = statistics.quantiles(server.completed, n=100)[98] * 1000
        print(f"| {server.title} | {created:.2f} ms | {completed:.2f} ms | {slowest:.2f} ms |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
