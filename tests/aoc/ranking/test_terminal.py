"""Terminal: a printed board has a title, a table and notes."""

import pytest

from bridgehead.aoc.ranking.terminal import print_board
from tests.aoc.ranking.boards import board


def test_a_board_is_printed_with_its_title_and_its_notes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    print_board(board({"a": {1: [100, 101, 102, 103, 104]}, "b": {1: [900, 905, 910, 915, 920]}}))

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Solving time"
    assert lines[2].split()[:3] == ["1", "a", "1.00×"]
    assert lines[4].startswith("All the time an agent took, failures included")
