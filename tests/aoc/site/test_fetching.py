"""Fetching: what `bridgehead aoc fetch` asks for, and what it leaves in the folder."""

from pathlib import Path

import pytest

from bridgehead.aoc.site.fetching import REMINDER
from bridgehead.runtime.errors import BridgeError
from tests.aoc.data import Data
from tests.aoc.site.person import fetcher, paths
from tests.aoc.site.stand_in import Site
from tests.support.clock import Clock


def test_a_day_is_fetched_once_and_cached_for_ever(data: Data, site: Site) -> None:
    said: list[str] = []
    clock = Clock()
    fetcher(data, site, clock, said).fetch_day(1)
    fetcher(data, site, clock, said).fetch_day(1)

    event = data.folder / "2024"
    assert paths(site) == ["/2024/day/1", "/2024/day/1/input"]
    assert (event / "instructions" / "Day01_phase1.md").read_text() == (
        "## --- Day 1: Lanterns ---\n\nCount the *lit* ones & more.\n\n"
        "```\n1 2\n3 4\n```\n\n- one\n- two `x`\n"
    )
    assert (event / "inputs" / "day01.txt").read_text() == "200000\n"
    assert not (event / "instructions" / "Day01_phase2.md").exists()
    assert {"instructions/", "inputs/", "answers/"} <= set((event / ".gitignore").read_text().splitlines())
    assert REMINDER in said


def test_a_second_phase_and_known_answers_come_when_asked_for_again(data: Data, site: Site) -> None:
    clock = Clock()
    fetcher(data, site, clock).fetch_day(1)
    site.is_solved = True
    fetcher(data, site, clock).fetch_day(1, again=True)

    event = data.folder / "2024"
    assert paths(site) == ["/2024/day/1", "/2024/day/1/input", "/2024/day/1"]
    assert "--- Part Two ---\n\nAdd them *up*." in (event / "instructions" / "Day01_phase2.md").read_text()
    assert (event / "answers" / "Day01_phase1.txt").read_text() == "447\n"


def test_the_second_answer_comes_when_it_was_given_after_the_second_text_was_fetched(
    data: Data, site: Site
) -> None:
    clock = Clock()
    site.is_solved = True
    fetcher(data, site, clock).fetch_day(1)
    answers = data.folder / "2024" / "answers"
    assert not (answers / "Day01_phase2.txt").exists()
    site.is_solved_twice = True
    for _ in range(2):  # the second time there is nothing left to ask for
        fetcher(data, site, clock).fetch_day(1, again=True)

    assert (answers / "Day01_phase2.txt").read_text() == "512\n"
    assert paths(site) == ["/2024/day/1", "/2024/day/1/input", "/2024/day/1"]


@pytest.mark.parametrize(
    ("now", "day", "words"),
    [
        (1733029199.0, 1, "Day 1 of 2024 is not out yet. It comes out on 2024-12-01 at 05:00 UTC"),
        (1733029201.0, 2, "Day 2 of 2024 is not out yet."),
    ],
)
def test_a_day_that_is_not_out_is_refused_without_a_request(
    data: Data, site: Site, now: float, day: int, words: str
) -> None:
    with pytest.raises(BridgeError, match=words):
        fetcher(data, site, Clock(now)).fetch_day(day)

    assert site.asked == []


def test_nothing_is_ever_submitted() -> None:
    sources = Path(__file__).parents[3] / "src" / "bridgehead" / "aoc"

    for path in sources.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "POST" not in text, path
        assert "/answer" not in text, path
