"""Lines: whole lines come out, however the bytes come in, and never more than the limit is kept."""

from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mcp.stdio.lines import Lines, TooLong

pieces = st.lists(st.text("ab \r\n", max_size=20).map(str.encode), max_size=10)


@given(pieces=pieces, limit=st.integers(1, 12))
def test_the_lines_do_not_depend_on_how_the_bytes_are_cut(pieces: list[bytes], limit: int) -> None:
    lines = Lines(limit)
    found = [line for piece in pieces for line in lines.feed(piece)] + lines.end()
    expected: list[bytes | None] = []
    for line in b"".join(pieces).split(b"\n"):
        if len(line) > limit:
            expected.append(None)
        elif line.strip():
            expected.append(line)
    assert [None if isinstance(line, TooLong) else line for line in found] == expected


def test_an_end_is_told_once() -> None:
    lines = Lines(100)
    assert lines.feed(b"half") == []
    assert lines.end() == [b"half"]
    assert lines.end() == []
