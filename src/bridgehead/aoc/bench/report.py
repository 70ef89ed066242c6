"""Report: the results of a benchmark as a Markdown page with the board and its picture."""

from __future__ import annotations

from pathlib import Path

from bridgehead.runtime.errors import Unavailable

from ..files.filters import Filters
from ..ranking import plot, rendering, wording
from ..workspace import Workspace
from .journal import RunResult
from .progress import run_text

PICTURE = "report.svg"


def write_report(workspace: Workspace, folder: Path, results: list[RunResult], why: str) -> Path:
    """Write `report.md`, and the picture if matplotlib is there; return the page's path."""
    filters = Filters(measure="solving")
    board = workspace.board_now(filters).board
    picture = ""
    try:
        # Narrow, because the tables below have the figures, and a phone may show the page.
        plot.draw(workspace, filters, str(folder / PICTURE), form=plot.NARROW)
        picture = f"[![The board as a picture]({PICTURE})]({PICTURE})\n\n"
    except Unavailable as missing:
        picture = f"(No picture: {missing.message})\n\n"
    page = folder / "report.md"
    page.write_text(
        f"# Advent of Code {workspace.year}: agents compared\n\n"
        + (f"Ended early: {why}\n\n" if why else "")
        + f"{picture}{rendering.markdown(board)}\n"
        + "".join(f"{rendering.escape(note)}\n" for note in wording.notes(board))
        + f"\n## Agents\n\n{_agents_table(results)}\n## Runs\n\n"
        + "".join(f"- {_run(result)}\n" for result in results)
        + f"\n## How it was made\n\n{_conditions(results)}",
        encoding="utf-8",
    )
    return page


def _run(result: RunResult) -> str:
    return f"{rendering.escape(run_text(result))} (`{Path(result.transcript).name}`)"


def _agents_table(results: list[RunResult]) -> str:
    """Say what each agent is; its figures are those of the board, and only there."""
    lines = [
        "| agent | version | model | language | runs | broken |",
        "| --- | --- | --- | --- | ---: | ---: |",
    ]
    for name in sorted({result.agent for result in results}):
        runs = [result for result in results if result.agent == name]
        last = runs[-1]
        cells = (
            name,
            last.version or "–",
            ", ".join(sorted({run.model for run in runs if run.model is not None})) or "–",
            last.language,
            str(sum(not run.is_broken for run in runs)),
            str(sum(run.is_broken for run in runs)),
        )
        lines.append("| " + " | ".join(map(rendering.escape, cells)) + " |")
    return "\n".join(lines) + "\n"


def _conditions(results: list[RunResult]) -> str:
    isolated = sum(result.is_isolated for result in results)
    kinds = {0: "not isolated, so times are measured at best", len(results): "isolated by bubblewrap"}
    isolation = kinds.get(isolated, f"isolated in {isolated} of {len(results)} cases")
    hosts = ", ".join(sorted({result.host for result in results})) or "–"
    prompts = ", ".join(sorted({result.prompt_hash for result in results})) or "–"
    return (
        f"- {wording.count(len(results), 'run')}, {isolation}, each in an empty home directory with this "
        "bridge as the only MCP server\n"
        "- time runs from the moment the bridge hands out text and input to the correct answer; 5 tries; "
        "only the first attempt at a phase counts\n"
        "- tokens and cost, on the board the mean of an attempt, which is one phase, are what the agents "
        "report themselves\n"
        f"- host: {hosts}; prompt: {prompts}\n"
    )
