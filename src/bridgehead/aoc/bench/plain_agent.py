"""Plain agent: solve with a program that knows nothing of MCP, given as `bench --agent NAME=COMMAND`.

The program gets puzzle and input on standard input and the phase in AOC_PHASE; the last line that it prints
is the answer. Run alone, in isolation, like `demo_agent` beside it: only the standard library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

if __package__:
    from .demo_agent import Server, find
else:  # run as a script
    from demo_agent import Server, find  # type: ignore[import-not-found, no-redef]


def main(arguments: list[str]) -> int:
    """Solve the phases of a day, one after the other, until one is not solved."""
    config, prompt, *command = arguments
    day, name = int(find(r"day (\d+)", prompt)), find(r'llm_name "([^"]+)"', prompt)
    configured = json.loads(Path(config).read_text(encoding="utf-8"))["mcpServers"]["aoc"]
    server = Server([configured["command"], *configured["args"]])
    for phase in (1, 2) if "two phases" in prompt else (1,):
        started = server.call("start_attempt", day=day, phase=phase, llm_name=name)
        solver = subprocess.run(  # noqa: S603 - what the user asked to measure
            command,
            input=f"{started['instruction']}\n{_read_input(server, started)}",
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "AOC_PHASE": str(phase)},
        )
        sys.stdout.write(solver.stdout)
        lines = [line.strip() for line in solver.stdout.split("\n") if line.strip()]
        is_answered = bool(lines) and solver.returncode == 0
        answer = {"answer": lines[-1]} if is_answered else {"give_up": True}
        if server.call("finish_attempt", attempt=started["attempt"], **answer)["outcome"] != "solved":
            break
    server.close()
    return 0


def _read_input(server: Server, started: dict[str, Any]) -> str:
    """Return the whole input, page by page."""
    text, offset = started["input"] or "", started["next_offset"]
    while offset is not None:
        page = server.call("read_input", attempt=started["attempt"], offset=offset)
        text, offset = text + page["input"], page["next_offset"]
    return str(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
