"""Demo agent: a script in place of an agent. It speaks MCP over stdio and solves invented puzzles.

Started like any agent of a benchmark, with a prompt and a file of MCP servers. Only the standard library,
because this file is run alone, in isolation.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import groupby
from math import isqrt
from pathlib import Path
from typing import Any

TOKENS_PER_CHARACTER = 0.25


def _tickets(text: str) -> list[int]:
    numbers = map(int, text.split())
    return [number for number in numbers if number % sum(map(int, str(number))) == 0]


def _gulls(text: str) -> list[int]:
    return [len(list(group)) for _, group in groupby(text.strip())]


SOLVERS: dict[tuple[int, int], Callable[[str], int]] = {
    (1, 1): lambda text: isqrt(int(text)),
    (1, 2): lambda text: sum(number * number for number in range(1, isqrt(int(text)) + 1)),
    (2, 1): lambda text: len(_tickets(text)),
    (2, 2): lambda text: sum(_tickets(text)),
    (3, 1): lambda text: max(_gulls(text)),
    (3, 2): lambda text: len(set(_gulls(text))),
}
"""The invented puzzles by day and phase; `demo.py` has their texts."""


class Server:
    """An MCP server over stdio, as a client sees it."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
        self._number = 0
        self.characters = 0
        client = {"name": "demo-agent", "version": "1"}
        self.request(
            "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and wait for its result."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            line = self._process.stdout.readline() if self._process.stdout is not None else ""
            if not line:
                raise SystemExit("The MCP server has ended.")
            message = json.loads(line)
            if message.get("id") == self._number:
                self.characters += len(line)
                return message["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; return the structure of its result."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]

    def close(self) -> None:
        """End the server."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()


def main(arguments: list[str]) -> int:
    """Follow the prompt, with this agent's skill."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mcp", required=True)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds of thought for each phase")
    parser.add_argument("--slips", type=int, default=0, help="wrong answers before the right one")
    parser.add_argument("--fails", action="store_true", help="give up on every second day")
    parser.add_argument("prompt")
    chosen = parser.parse_args(arguments)
    day = int(find(r"day (\d+)", chosen.prompt))
    name = find(r'llm_name "([^"]+)"', chosen.prompt)
    phases = [1, 2] if "two phases" in chosen.prompt else [1]
    configured = json.loads(Path(chosen.mcp).read_text(encoding="utf-8"))["mcpServers"]["aoc"]
    server = Server([configured["command"], *configured["args"]])
    for phase in phases:
        started = server.call("start_attempt", day=day, phase=phase, llm_name=name)
        answer = SOLVERS[day, phase](started["input"])
        time.sleep(chosen.pause)
        if chosen.fails and day % 2 == 0:
            server.call("finish_attempt", attempt=started["attempt"], give_up=True)
            break
        for slip in range(chosen.slips, -1, -1):
            server.call("finish_attempt", attempt=started["attempt"], answer=str(answer + slip))
    server.close()
    tokens = round(server.characters * TOKENS_PER_CHARACTER)
    usage = {"input_tokens": tokens, "output_tokens": 50}
    result = {"type": "result", "usage": usage, "total_cost_usd": round(tokens * 2e-6, 6)}
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


def find(pattern: str, prompt: str) -> str:
    """Return what the prompt says at the group of a pattern."""
    match = re.search(pattern, prompt)
    if match is None:
        raise SystemExit(f"The prompt says nothing like {pattern}.")
    return match[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
