"""Lines: counted alike everywhere, and only a line feed ends one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.runtime.lines import count_lines, locate, split_lines


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


@given(st.text(st.sampled_from("a\n\r\x0b\x0c\x1c\x85\u2028\u2029")))
def test_lines_with_their_ends_are_the_content(content: str) -> None:
    lines = split_lines(content, keepends=True)

    assert "".join(lines) == content
    assert all(line.find("\n") in (-1, len(line) - 1) for line in lines)
    assert [line.removesuffix("\n").removesuffix("\r") for line in lines] == split_lines(content)
    assert len(lines) == count_lines(content)


def test_a_place_is_a_line_and_a_column() -> None:
    assert [locate("ab\ncd", at) for at in (0, 1, 3, 4)] == [(1, 1), (1, 2), (2, 1), (2, 2)]
