"""Play the jobs, and print calls, wrong turns and bytes: `python -m bench.agents [--source OTHER/src]`.

The agent ranks tools by the words that they share with the request, calls the best that takes the values, and
goes on with what a result names, or with the next best, until it has seen what it was asked for. It is shown
the structure of a result, as by Claude Code, or the text, as by Gemini CLI.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.agents.jobs import JOBS, Job
from tests.agents.far_sides import far_sides

MAX_CALLS = 5


class Server:
    """A bridge over stdio."""

    def __init__(self, bridge: str, environment: dict[str, str], source: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bridgehead", bridge],
            env={**os.environ, **environment, "PYTHONPATH": source},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._id = 0
        client = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
        }
        self.request("initialize", client)
        self.tools: list[dict[str, Any]] = self.request("tools/list", {})["result"]["tools"]

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._id:
                return answer
        raise EOFError(method)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def words(text: str) -> set[str]:
    return {
        word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower().replace("_", " ")) if len(word) > 2
    }


def rank(tools: list[dict[str, Any]], job: Job) -> list[dict[str, Any]]:
    """Return the tools that take the job's values, those that share rare words with the request first."""
    known = {tool["name"]: words(f"{tool['name']} {tool.get('description', '')}") for tool in tools}
    asked = words(job.request)

    def score(tool: dict[str, Any]) -> float:
        shared = asked & known[tool["name"]]
        rarity = sum(math.log(1 + len(tools) / sum(word in one for one in known.values())) for word in shared)
        used = len(job.values.keys() & tool["inputSchema"].get("properties", {}).keys())
        return rarity + used + len(asked & words(tool["name"]))

    fits = [tool for tool in tools if set(tool["inputSchema"].get("required", [])) <= job.values.keys()]
    return sorted(fits, key=score, reverse=True)


def show(answer: dict[str, Any], view: str) -> str:
    """Return what the model is shown."""
    result = answer.get("result")
    if result is None:
        return str(answer["error"]["message"])
    if view == "structure" and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False)
    return "\n".join(block.get("text", "") for block in result["content"])


def play(server: Server, job: Job, view: str) -> tuple[int, int, int, bool]:
    """Return the calls, the wrong turns, the bytes that were shown, and whether it was done."""
    ranked = rank(server.tools, job)
    calls = size = 0
    seen = ""
    while ranked and calls < MAX_CALLS:
        tool = ranked.pop(0)
        taken = tool["inputSchema"].get("properties", {}).keys() & job.values.keys()
        arguments = {name: job.values[name] for name in sorted(taken)}
        shown = show(server.request("tools/call", {"name": tool["name"], "arguments": arguments}), view)
        calls, size, seen = calls + 1, size + len(shown.encode()), f"{seen}\n{shown}"
        if all(part in seen for part in job.seen):
            return calls, calls - 1, size, True
        # What a result names comes first; long contents name nothing.
        ranked.sort(key=lambda one: one["name"] not in shown[-2_000:])
    return calls, calls, size, False


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.agents", description=__doc__)
    parser.add_argument("--source", default=str(Path(__file__).parents[2] / "src"))
    source = parser.parse_args().source
    rows = [["bridge", "request", "calls", "wrong turns", "bytes", "calls", "wrong turns", "bytes"]]
    totals = [0] * 6
    done = [0, 0]
    results: dict[tuple[int, str], tuple[int, int, int, bool]] = {}
    for view in ("structure", "text"):
        with tempfile.TemporaryDirectory() as folder, far_sides(Path(folder) / "far") as far:
            servers = {one.name: Server(one.name, one.environment, source) for one in far.servers}
            for place, job in enumerate(JOBS):
                results[place, view] = play(servers[job.bridge], job, view)
            for server in servers.values():
                server.close()
    for place, job in enumerate(JOBS):
        cells: list[str] = []
        for column, view in enumerate(("structure", "text")):
            *figures, is_done = results[place, view]
            done[column] += is_done
            for offset, figure in enumerate(figures):
                totals[3 * column + offset] += figure
            cells += [str(figures[0]), str(figures[1]) if is_done else "not done", f"{figures[2]:,}"]
        rows.append([job.bridge, job.request, *cells])
    rows.append(
        ["**all**", f"done: {done[0]} and {done[1]} of {len(JOBS)}", *(f"{total:,}" for total in totals)]
    )
    for number, row in enumerate(rows):
        print(f"| {' | '.join(row)} |")
        if number == 0:
            print("| --- | --- |" + " ---: |" * 6)


if __name__ == "__main__":
    main()
