"""Matching: the lines that fit, numbered, bounded, and shortened where they are very long."""

import pytest

from bridgehead.bitburner.tools.matching import Job, Match, find_matches
from tests.bitburner.playing import Play

FILES = [("", "a.js", "one\ntwo\nTWO"), ("", "b.js", "two" + "x" * 400)]


def job(pattern: str, *, ignore_case: bool = False, most: int = 10) -> Job:
    return Job(pattern, ignore_case, most, 60.0, FILES)


def test_lines_that_match_are_found_with_their_numbers() -> None:
    assert find_matches(job("^two$")).matches == [Match("a.js", 2, "two")]
    assert [one.line for one in find_matches(job("^two$", ignore_case=True)).matches] == [2, 3]


def test_no_more_are_told_than_were_asked_for() -> None:
    exact, cut = find_matches(job("two", most=2)), find_matches(job("two", most=1))

    assert (len(exact.matches), exact.truncated) == (2, False)
    assert (len(cut.matches), cut.truncated) == (1, True)


def test_a_very_long_line_is_shortened() -> None:
    (found,) = find_matches(job("twox")).matches

    assert found.text == "two" + "x" * 197 + "… (403 characters)"


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(?P<a>x)(?P<a>y)"])
def test_a_pattern_that_is_none_is_a_problem(pattern: str) -> None:
    assert find_matches(job(pattern)).problem


async def test_a_search_and_a_read_count_the_same_lines(play: Play) -> None:
    play.game.servers["home"]["odd.txt"] = "one\x0ctwo\u2028three\nneedle\r\nlast\n"
    _, found = await play.ok("search_files", pattern="needle", glob="odd.txt")
    (match,) = found["matches"]
    line = match["line"]
    text, read = await play.ok("read_file", filename="odd.txt", start_line=line, end_line=line)

    assert (line, text, match["text"]) == (2, "needle", "needle")
    assert read["total_lines"] == 3
