"""Draws the pictures in docs/images: `make pictures`.

The leaderboard and the benchmark are of invented records, the chart of bench/RESULTS.md, the terminal of a
demo that runs now.
Pictures of pages in a browser are made by `make browser`.
"""

import json
import random
import tempfile
from pathlib import Path

from bridgehead.aoc.bench.benchmark import record
from bridgehead.aoc.bench.journal import PhaseResult, RunResult, run_id
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.ranking.plot import NARROW, THEMES, draw
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import open_workspace
from bridgehead.runtime import plugins
from docs import call_path, chart, terminal
from release.install_links import OFFERED, button_name

IMAGES = Path(__file__).parent / "images"
MODELS = {
    "clever-fox": 1.0,
    "quick-otter": 1.1,
    "brave-badger": 1.8,
    "calm-crane": 2.6,
    "patient-heron": 14.0,
}
PUZZLES = {(1, 1): 40_000, (1, 2): 90_000, (2, 1): 31_000, (2, 2): 160_000, (3, 1): 62_000}
NEWCOMER = "new-newt"


def write_records(folder: Path) -> None:
    """Invent runs of a few models on three days."""
    draw_time = random.Random(11).lognormvariate  # noqa: S311 - the same picture each time
    for day in {day for day, _ in PUZZLES}:
        entries = []
        for (of_day, phase), base in PUZZLES.items():
            runs = {**dict.fromkeys(MODELS, 9), NEWCOMER: 2 if (of_day, phase) == (1, 1) else 0}
            for llm, count in runs.items():
                times = (round(base * MODELS.get(llm, 0.7) * draw_time(0, 0.22)) for _ in range(count))
                entries += [_entry(llm, phase, time) for time in times if of_day == day]
        (folder / f"day{day:02}.json").write_text(json.dumps({"day": day, "entries": entries}))


def _entry(llm: str, phase: int, time: int) -> dict[str, object]:
    return {"llm": llm, "phase": phase, "speedMs": time, "timestamp": "2025-12-01T10:30:00.000Z"}


BUTTON = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="28" role="img" aria-label="{text}">
<rect width="{width}" height="28" rx="5" fill="{fill}"/>
<text x="{middle}" y="18.5" fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="12" \
text-anchor="middle" textLength="{length}">{text}</text>
</svg>
"""
FILLS = {"cursor": "#17202c", "vscode": "#0065a9"}


def draw_buttons() -> None:
    """Draw a button for each bridge and each client that takes links."""
    for bridge in plugins.built_in_names():
        for client in OFFERED:
            text = f"{bridge} in {client.title}"
            length = round(7.2 * len(text))
            width = length + 24
            drawn = BUTTON.format(
                text=text, length=length, width=width, middle=width / 2, fill=FILLS[client.id]
            )
            path = IMAGES / button_name(bridge, client)
            path.write_text(drawn, encoding="utf-8", newline="\n")
            print(path)


def draw_leaderboard() -> None:
    """Draw the leaderboard of the invented records."""
    with tempfile.TemporaryDirectory() as folder:
        speeds = Path(folder) / "speeds"
        speeds.mkdir()
        write_records(speeds)
        event = open_workspace(AocSettings({"AOC_DATA_DIR": folder}))
        for theme in THEMES:
            print(draw(event, Filters(), str(IMAGES / f"aoc-leaderboard-{theme}.svg"), theme))


AGENTS = {"fox-large": (1.0, 0.97, 0.21), "otter-mini": (1.4, 0.8, 0.03), "heron-2": (3.2, 0.93, 0.35)}
"""Time, solve rate and dollars a run of invented agents."""


def draw_bench() -> None:
    """Draw the picture of a benchmark's report, of invented agents."""
    chance = random.Random(5)  # noqa: S311 - the same picture each time
    with tempfile.TemporaryDirectory() as folder:
        settings = {"AOC_DATA_DIR": folder, "BRIDGEHEAD_STATE_DIR": f"{folder}/state"}
        workspace = open_workspace(AocSettings(settings))
        for agent, (factor, rate, cost) in AGENTS.items():
            for day in range(1, 9):
                phases = [_phase(chance, phase, 40_000 * factor * (1 + day / 3), rate) for phase in (1, 2)]
                result = RunResult(
                    id=run_id(agent, day, 1, "invented"),
                    agent=agent,
                    version=None,
                    model=None,
                    language="Python",
                    day=day,
                    repeat=1,
                    prompt_hash="invented",
                    started="2025-12-01T10:30:00.000Z",
                    seconds=600,
                    is_isolated=True,
                    phases=phases,
                    tokens=90_000,
                    cost_usd=cost * chance.lognormvariate(0, 0.2),
                    status=0,
                    problem="",
                    transcript="",
                    host="",
                )
                record(workspace, result)
        for theme in THEMES:
            print(draw(workspace, Filters(), str(IMAGES / f"aoc-bench-{theme}.svg"), theme, NARROW))


def _phase(chance: random.Random, phase: int, time: float, rate: float) -> PhaseResult:
    is_solved = chance.random() < rate
    wrong = chance.choice((0, 0, 0, 1, 2)) if is_solved else 5
    milliseconds = round(time * phase * chance.lognormvariate(0, 0.25))
    return PhaseResult(phase, "solved" if is_solved else "failed", milliseconds, wrong, "verified")


def main() -> None:
    """Draw every picture."""
    IMAGES.mkdir(exist_ok=True)
    draw_leaderboard()
    draw_bench()
    draw_buttons()
    for theme, colours in THEMES.items():
        (IMAGES / f"call-path-{theme}.svg").write_text(
            call_path.draw(colours), encoding="utf-8", newline="\n"
        )
        print(chart.draw(IMAGES / f"bench-{theme}.svg", colours))
    print(terminal.record(IMAGES / "demo.svg"))


if __name__ == "__main__":
    main()
