"""Table: what the models of the clients saw, in Markdown, with bytes and o200k tokens."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.agents.far_sides import FarSides
from tests.agents.scenarios import read_log
from tests.interop.node import ROOT, Package
from tests.support.fake_model import Turn

if TYPE_CHECKING:
    from tests.agents.__main__ import Run

TOKENIZER = Package("gpt-tokenizer", "4.0.0")
"""Carries the ranks of o200k_base; nothing is fetched to count."""
PAGE = ROOT / "docs" / "clients.md"
BEGIN = "<!-- agents: written by `make agents ARGS=--write` -->"
END = "<!-- end of agents -->"
_COUNT = """
const {countTokens} = require(process.argv[1] + "/cjs/encoding/o200k_base");
let input = "";
process.stdin.on("data", (piece) => (input += piece));
process.stdin.on("end", () => console.log(JSON.stringify(JSON.parse(input).map((one) => countTokens(one)))));
"""


def count_tokens(texts: list[str], runtime: str) -> list[int]:
    """Count o200k tokens."""
    TOKENIZER.install()
    done = subprocess.run(
        [runtime, "-e", _COUNT, str(TOKENIZER.home)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    counts: list[int] = json.loads(done.stdout)
    return counts


def visible_part(turn: Turn, far: FarSides) -> str:
    """Return what the first request holds of the bridges: their tools, or the names, and instructions."""
    parts: list[str] = []
    for bridge in ("aoc", "bitburner", "mercury"):
        _, tools, _, instructions = read_log(far, bridge)
        if instructions[:60] in turn.text:
            parts.append(instructions)
        for name in tools:
            tool = turn.find(name)
            if tool is not None:
                parts.append(json.dumps([tool.name, tool.description, tool.schema], ensure_ascii=False))
            else:
                parts += re.findall(rf"[\w-]*__{name}\b", turn.text)[:1]
    return "\n".join(parts)


def make(runs: list[Run], runtime: str) -> str:
    """Return the table."""
    counts = count_tokens([text for run in runs for text in (run.first_request, run.results)], runtime)
    heads = ["client", "version", "model", "revision", "tools are offered", "shown of a result"]
    heads += ["instructions", "carried from the start", "all results"]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * 7}{' ---: |' * 2}"]
    for run, carried, results in zip(runs, counts[::2], counts[1::2], strict=True):
        cells = (
            run.client.name,
            run.client.package.version,
            run.client.model,
            run.revision,
            run.offered,
            run.shows,
            "yes" if run.shows_instructions else "no",
            f"{len(run.first_request.encode()):,} B, {carried:,} tokens",
            f"{len(run.results.encode()):,} B, {results:,} tokens",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write(rows: str) -> None:
    """Put the table into the page, between its marks."""
    page = Path(PAGE).read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{rows}\n{END}{after}", encoding="utf-8")
