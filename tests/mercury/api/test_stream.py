"""SSE: the same events, however the bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mercury.api.stream import Events, EventTooLong

STREAM = (
    b': hello\n\ndata: {"a":1}\n\nevent: x\ndata: {"b":\ndata: 2}\nid: 7\n\ndata:{"c":3}\n\ndata: [DONE]\n\n'
)
EXPECTED = [b'{"a":1}', b'{"b":\n2}', b'{"c":3}', b"[DONE]"]


def events(*pieces: bytes) -> list[bytes]:
    found = Events(1000)
    return [event for piece in pieces for event in found.feed(piece)] + found.end()


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_every_kind_of_line_end_is_understood(ending: bytes) -> None:
    assert events(STREAM.replace(b"\n", ending)) == EXPECTED


@given(st.lists(st.integers(0, 150), max_size=8), st.sampled_from([b"\n", b"\r\n"]))
def test_however_a_stream_is_cut_its_events_are_the_same(cuts: list[int], ending: bytes) -> None:
    stream = STREAM.replace(b"\n", ending)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[begin:end] for begin, end in pairwise(edges)]

    assert events(*pieces) == EXPECTED


def test_the_last_event_needs_no_empty_line() -> None:
    assert events(b"data: 1\n\ndata: 2") == [b"1", b"2"]
    assert events(b"data: 1\n\n\r\n") == [b"1"]


def test_an_event_that_never_ends_is_refused() -> None:
    found = Events(10)
    with pytest.raises(EventTooLong):
        found.feed(b"data: " + b"x" * 20)
