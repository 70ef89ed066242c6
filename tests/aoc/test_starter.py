"""Starter: a folder with a puzzle of our own, and nothing that was there is touched."""

from pathlib import Path

from bridgehead.aoc.starter import ANSWER1, ANSWER2, ignore_puzzles, make_starter


def lit(lanterns: int) -> list[int]:
    """Play the puzzle out."""
    row = [False] * (lanterns + 1)
    for walk in range(1, lanterns + 1):
        for lantern in range(walk, lanterns + 1, walk):
            row[lantern] = not row[lantern]
    return [number for number, is_lit in enumerate(row) if is_lit]


def test_the_answers_are_those_of_the_puzzle() -> None:
    assert (len(lit(10)), sum(lit(10))) == (3, 14)  # as the text says
    assert (447, sum(number**2 for number in range(1, 448))) == (ANSWER1, ANSWER2)


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "day01.txt").write_text("mine")
    (tmp_path / ".gitignore").write_text("*.pyc")

    made = make_starter(tmp_path)

    assert (tmp_path / "inputs" / "day01.txt").read_text() == "mine"
    assert tmp_path / "inputs" / "day01.txt" not in made
    assert (tmp_path / ".gitignore").read_text().splitlines()[0] == "*.pyc"
    assert not ignore_puzzles(tmp_path)
    assert make_starter(tmp_path) == []
