"""Wording: boards and histories as short lines for whoever reads text, be it a model or a person. Pure."""

from __future__ import annotations

from .history import Page
from .leaderboard import Row

NO_RUNS = "No runs are recorded for this yet. Record one with record_speed."
UNEVEN = "Not every LLM ran the same puzzles: filter by day and phase to compare like with like."


def ms(value: float) -> str:
    """Write a time in milliseconds, with a fraction only where it says something."""
    return f"{value:.1f}ms" if value < 100 and value % 1 else f"{value:.0f}ms"  # noqa: PLR2004 - three digits


def times(ratio: float | None) -> str:
    """Write how many times slower something is than the best."""
    return "–" if ratio is None else f"{ratio:.2f}×"


def board_text(rows: list[Row], total: int, *, is_even: bool, next_offset: int | None) -> str:
    """Write one page of a board."""
    if not total:
        return NO_RUNS
    lines = [_row(row) for row in rows]
    if not is_even:
        lines.append(UNEVEN)
    if next_offset is not None:
        lines.append(f"{total} in all; for more: offset {next_offset}")
    return "\n".join(lines) or f"There are only {total} rows."


def _row(row: Row) -> str:
    spread = "" if row.stdev is None else f", stdev {ms(row.stdev)}"
    slowest = "" if row.p95 is None else f", p95 {ms(row.p95)}"
    return (
        f"{row.rank}. {row.llm}: median {ms(row.median)}, {times(row.slower)} the best "
        f"(n {row.n} on {row.puzzles}, best {ms(row.best)}, mean {ms(row.mean)}{spread}{slowest})"
    )


def history_text(page: Page) -> str:
    """Write one page of a history."""
    if not page.total:
        return NO_RUNS
    lines = [
        f"{run.timestamp} Day {run.day} Phase {run.phase} {run.llm}: {run.speed_ms}ms" for run in page.runs
    ]
    if page.older is not None:
        lines.append(f"{page.total} in all; for the next page: older {page.older}")
    return "\n".join(lines)
