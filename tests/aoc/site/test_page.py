"""Page: a day's page of the site becomes the Markdown of its phases and the user's own answers."""

import sys

import pytest

from bridgehead.aoc.site.page import parse_page
from bridgehead.runtime.errors import Unavailable
from tests.aoc.site.stand_in import FIRST, SECOND, SOLVED


def page(*parts: str) -> str:
    return f"<html><body><main>{''.join(parts)}</main></body></html>"


def test_a_phase_becomes_markdown_with_its_code_and_lists() -> None:
    found = parse_page(page(FIRST))

    (phase,) = found.phases
    assert phase == (
        "## --- Day 1: Lanterns ---\n\nCount the *lit* ones & more.\n\n"
        "```\n1 2\n3 4\n```\n\n- one\n- two `x`\n"
    )
    assert found.answers == []


def test_stars_and_underscores_of_a_puzzle_are_not_escaped() -> None:
    found = parse_page(page('<article class="day-desc"><p>2 * 3 * 4 and [x]</p></article>'))

    assert found.phases == ["2 * 3 * 4 and [x]\n"]


def test_both_answers_of_a_solved_day_are_found() -> None:
    second = SOLVED.replace("447", " 1,048 ")

    found = parse_page(page(FIRST, SOLVED, SECOND, second))

    assert len(found.phases) == 2
    assert found.answers == ["447", "1,048"]


def test_code_that_is_not_said_to_be_an_answer_is_none() -> None:
    found = parse_page(page(FIRST, "<p>You can also <code>share</code> this puzzle.</p>"))

    assert found.answers == []


def test_a_page_without_a_puzzle_is_refused() -> None:
    with pytest.raises(Unavailable, match="no puzzle"):
        parse_page(page("<p>Please log in.</p>"))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdownify", None)

    with pytest.raises(Unavailable) as refusal:
        parse_page(page(FIRST))

    assert "bridgehead[fetch]" in str(refusal.value.next_step)
