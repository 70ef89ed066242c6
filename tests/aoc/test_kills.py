"""Kills: a short round of what `python -m bench.aoc` plays at length."""

from pathlib import Path

from bench.aoc.kills import play


async def test_no_answered_record_is_lost_or_doubled_when_writers_are_killed(tmp_path: Path) -> None:
    outcome = await play(tmp_path, processes=4, records=60, kills=3, seed=7)

    assert outcome.problems == []
    assert outcome.kills == 3
    assert outcome.looks > 3
    assert len(outcome.answered) >= len(outcome.sent) - 3 * 8
    assert len(outcome.sent) == 240
