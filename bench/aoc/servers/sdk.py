"""A server of the aoc bridge's shape on the official Python SDK: the same tools, resources and prompts.

It reads the same puzzle files. `python sdk.py DATA_DIRECTORY` serves standard input and output.
"""

import logging
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import Field

FOLDER = Path(sys.argv[1])
Day = Annotated[int, Field(ge=1, le=25, description="Day number (1-25)")]
Phase = Annotated[int, Field(ge=1, le=2, description="Phase (1 or 2)")]

server = MCPServer("aocMCP", version="1.0.0", log_level="WARNING")


def puzzle(day: int) -> str:
    """Give the text of a day."""
    first, second = (FOLDER / "instructions" / f"Day{day:02}_phase{phase}.md" for phase in (1, 2))
    if not second.exists():
        return f"# Day {day}\n\n{first.read_text()}"
    return f"# Day {day}\n\n## Phase 1\n{first.read_text()}\n\n## Phase 2\n{second.read_text()}"


@server.tool(description="Fetch the full puzzle instruction for a specific day", structured_output=False)
def fetch_instruction(day: Day) -> str:
    return puzzle(day)


@server.tool(
    description="Record the solving speed for an LLM on a specific day and phase", structured_output=False
)
def record_speed(
    day: Day,
    phase: Phase,
    llm_name: Annotated[str, Field(description="LLM name")],
    speed_ms: Annotated[int, Field(description="Solving time in milliseconds")],
) -> str:
    raise NotImplementedError


@server.tool(description="Rank LLMs by their median solving time", structured_output=False)
def speed_leaderboard(day: Day | None = None, phase: Phase | None = None, llm: str | None = None) -> str:
    raise NotImplementedError


@server.tool(description="List single recorded runs, newest first", structured_output=False)
def speed_history(day: Day | None = None, phase: Phase | None = None, llm: str | None = None) -> str:
    raise NotImplementedError


@server.resource("aoc://day{day}", name="Day Instructions", mime_type="text/plain")
def read_day(day: str) -> str:
    return puzzle(int(day))


@server.prompt(description="Solve one phase of a day, time it honestly and record it.")
def solve_day(day: str, phase: str = "1", language: str = "Python") -> str:
    return f"Solve phase {phase} in {language}.\n\n{puzzle(int(day))}"


@server.prompt(description="Compare models by their recorded solving times.")
def compare_models(day: str = "", phase: str = "", llm_name: str = "") -> str:
    return "Compare them."


if __name__ == "__main__":
    logging.getLogger("mcp").setLevel(logging.WARNING)
    server.run("stdio")
