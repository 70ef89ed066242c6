"""Lines: counted alike everywhere, and only a line feed ends one."""

import pytest

from bridgehead.bitburner.game.lines import count_lines, locate, split_lines
from tests.bitburner.playing import Play


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\nb", ["a", "b"]),
        ("a\n\n", ["a", ""]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\x0cb\u2028c\x0b\x85d", ["a\x0cb\u2028c\x0b\x85d"]),
    ],
)
def test_a_line_feed_ends_a_line_and_nothing_else(content: str, expected: list[str]) -> None:
    assert split_lines(content) == expected
    assert count_lines(content) == len(expected)


def test_a_place_is_a_line_and_a_column() -> None:
    assert [locate("ab\ncd", at) for at in (0, 1, 3, 4)] == [(1, 1), (1, 2), (2, 1), (2, 2)]


async def test_a_search_and_a_read_count_the_same_lines(play: Play) -> None:
    play.game.servers["home"]["odd.txt"] = "one\x0ctwo\u2028three\nneedle\r\nlast\n"
    _, found = await play.ok("search_files", pattern="needle", glob="odd.txt")
    (match,) = found["matches"]
    line = match["line"]
    text, read = await play.ok("read_file", filename="odd.txt", start_line=line, end_line=line)

    assert (line, text, match["text"]) == (2, "needle", "needle")
    assert read["total_lines"] == 3
