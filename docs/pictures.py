"""Draws the pictures in docs/images from invented records: `make pictures`."""

import json
import random
import tempfile
from pathlib import Path

from bridgehead.aoc.event import open_event
from bridgehead.aoc.ranking.board import Filters
from bridgehead.aoc.ranking.plot import THEMES, draw
from bridgehead.aoc.settings import AocSettings

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


def main() -> None:
    """Draw every picture."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        speeds = Path(folder) / "speeds"
        speeds.mkdir()
        write_records(speeds)
        event = open_event(AocSettings({"AOC_DATA_DIR": folder}))
        for theme in THEMES:
            print(draw(event, Filters(), str(IMAGES / f"aoc-leaderboard-{theme}.svg"), theme))


if __name__ == "__main__":
    main()
