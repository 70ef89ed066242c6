"""Plain: a stream that knows fewer signs shows something like them."""

import io

import pytest

from bridgehead.runtime.plain import written_plainly


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "✓ ✗ → ü ☃".encode()),
        ("cp1252", b"+ x -> \xfc ?"),
        ("ascii", b"+ x -> ? ?"),
    ],
)
def test_what_cannot_be_shown_is_shown_alike(encoding: str, shown: bytes) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    written_plainly(stream)

    stream.write("✓ ✗ → ü ☃")
    stream.flush()

    assert raw.getvalue() == shown


def test_half_a_character_is_shown_too() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8")
    written_plainly(stream)

    stream.write("a\ud800b")
    stream.flush()

    assert raw.getvalue() == b"a?b"
