"""Demo agent: what it makes of its puzzles; how it speaks MCP is tested with agent runs."""

import pytest

from bridgehead.aoc.bench.demo_agent import SOLVERS, main


@pytest.mark.parametrize(
    ("puzzle", "given", "answer"),
    [
        ((1, 1), "10\n", 3),
        ((1, 2), "10\n", 14),
        ((2, 1), "12\n13\n18\n", 2),
        ((2, 2), "12\n13\n18\n", 30),
        ((3, 1), "aabbbba\n", 4),
        ((3, 2), "aabbbba\n", 3),
    ],
)
def test_the_examples_in_the_texts_are_solved(puzzle: tuple[int, int], given: str, answer: int) -> None:
    assert SOLVERS[puzzle](given) == answer


def test_a_prompt_without_a_day_is_refused() -> None:
    with pytest.raises(SystemExit, match="The prompt says nothing like day"):
        main(["--mcp", "x", "Hello"])
