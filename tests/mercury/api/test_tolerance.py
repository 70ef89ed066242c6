"""Tolerance: what can be read of a response that is not quite as described."""

import gzip

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mcp import UNDECODABLE
from bridgehead.mercury.api.tolerance import MAX_IGNORED, MAX_RESPONSE_BYTES, mend, read_tolerantly, unzip
from bridgehead.mercury.api.wire import CompletionResponse


class Numbers(msgspec.Struct):
    values: list[int]


def test_a_field_of_the_wrong_type_is_dropped_and_the_others_stay() -> None:
    response, warnings = read_tolerantly(
        b'{"model": 5, "choices": [{"text": "a"}, 7, {"text": {}}]}', CompletionResponse
    )

    assert response.model is None
    assert [choice.text for choice in response.choices or ()] == ["a", None]
    assert warnings == [
        "Fields of the answer that could not be read were ignored: model, choices[1], choices[1].text."
    ]


def test_the_number_of_dropped_fields_is_limited() -> None:
    few, many = ([1, *["x"] * count] for count in (MAX_IGNORED, MAX_IGNORED + 1))

    assert read_tolerantly(msgspec.json.encode({"values": few}), Numbers)[0].values == [1]
    with pytest.raises(msgspec.ValidationError):
        read_tolerantly(msgspec.json.encode({"values": many}), Numbers)


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b'{"values"', b"[" * 100_000, b'{"values": null}'])
def test_what_is_no_response_stays_unreadable(data: bytes) -> None:
    with pytest.raises(UNDECODABLE):
        read_tolerantly(data, Numbers)


@given(st.text(st.characters(codec="utf-8", max_codepoint=0x10F7FF), max_size=20), st.integers(1, 5))
def test_however_a_text_is_cut_between_utf_16_units_it_is_whole_again(text: str, size: int) -> None:
    """As a server in JavaScript cuts it, whose strings are UTF-16."""
    units = text.encode("utf-16-be")
    escapes = [b"\\u" + units[at : at + 2].hex().encode() for at in range(0, len(units), 2)]
    pieces = [b"".join(escapes[at : at + size]) for at in range(0, len(escapes), size)]

    read = [read_tolerantly(b'{"message": "%b"}' % piece, CompletionResponse)[0].message for piece in pieces]

    assert mend("".join(read)) == text


def test_a_body_that_grows_when_it_is_unpacked_is_cut_at_the_limit() -> None:
    packed = gzip.compress(bytes(MAX_RESPONSE_BYTES + 1_000_000))

    assert len(packed) < 100_000
    assert len(unzip(packed)) == MAX_RESPONSE_BYTES
    assert unzip(gzip.compress(b"{}")) == b"{}"
