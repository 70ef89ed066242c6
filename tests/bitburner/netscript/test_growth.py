"""Growth: an analysis of foreign text takes linear work, counted in executed lines of Python."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.bitburner.netscript import scripts
from bridgehead.bitburner.netscript.definitions import Definitions
from tests.bitburner.netscript.checking_scripts import SEARCH, check
from tests.bitburner.netscript.growing import SHAPES, STATEMENTS, repeat
from tests.support.steps import count_lines

LINEAR = 2.4
"""Quadratic work would be 4."""


def lines_to_check(source: str) -> int:
    return count_lines(lambda: check(source))


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    check(repeat(list(STATEMENTS), 2))  # what is computed once must not count for the smaller program


@pytest.mark.parametrize("shape", SHAPES)
def test_a_check_grows_no_faster_than_the_script(shape: str) -> None:
    smaller, larger = (lines_to_check(SHAPES[shape](size)) for size in (150, 300))

    assert larger <= LINEAR * smaller


@settings(max_examples=12, deadline=None)
@given(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=6))
def test_a_check_of_any_mixture_grows_no_faster_than_the_script(statements: list[str]) -> None:
    smaller, larger = (lines_to_check(repeat(statements, size)) for size in (25, 50))

    assert larger <= LINEAR * smaller


def test_a_script_beyond_the_limit_is_reported_as_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "MAX_STEPS", 500)
    (problem,) = check(repeat(list(STATEMENTS), 20))

    assert problem.code == "not_checked"
    assert "would take too long" in problem.message


def test_a_script_of_a_bundler_is_reported_as_not_checked() -> None:
    (problem,) = check("let a = 1;\n" * 30_000)

    assert problem.code == "not_checked"


@pytest.mark.parametrize("word", ["a ", "server ", "hack,", "x.", "getServerMoneyAvailable "])
def test_a_search_takes_bounded_work_whatever_is_asked(word: str) -> None:
    shorter = count_lines(lambda: SEARCH.find((word * 1000)[:500], 8))
    longer = count_lines(lambda: SEARCH.find((word * 1000)[:1000], 8))

    assert longer <= LINEAR * shorter


@pytest.mark.parametrize("between", ["", "\n"])
def test_definitions_take_linear_work_also_on_one_line(between: str) -> None:
    def lines_to_read(size: int) -> int:
        text = between.join(f"export interface I{n} {{ f{n}(x: I{n}): void; }}" for n in range(size))
        return count_lines(lambda: Definitions(text))

    assert lines_to_read(100) <= LINEAR * lines_to_read(50)
