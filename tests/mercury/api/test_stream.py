"""SSE: the same events, however the bytes are cut."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mercury.api.stream import Events, EventTooLong, StreamedAnswer
from bridgehead.mercury.errors import MercuryError

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
    found.feed(b"data: 1234")
    with pytest.raises(EventTooLong):
        found.feed(b"x")


def test_the_cost_of_a_long_event_grows_with_its_length_alone() -> None:
    """Measured in what is copied: searching it again with each piece would copy 320 GB, and take minutes."""
    found = Events(20_000_000)
    for _ in range(40_000):
        assert found.feed(b"x" * 400) == []


# --- tool calls --------------------------------------------------------------------------------------------


def tool_call(arguments: str, name: str = "", index: int = 0) -> bytes:
    call = {"index": index, "id": "call_1", "function": {"name": name, "arguments": arguments}}
    chunk = {"choices": [{"delta": {"tool_calls": [call]}}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def test_the_arguments_of_a_tool_call_are_put_together() -> None:
    answer = StreamedAnswer(is_diffusing=False, max_bytes=10_000)
    for piece in (tool_call("", "look"), tool_call('{"at":'), tool_call("1}"), tool_call("{}", "see", 1)):
        answer.feed(piece, 0.0)

    calls = [call.function for call in answer.tool_calls]
    assert [(call.name, call.arguments) for call in calls if call] == [("look", '{"at":1}'), ("see", "{}")]


@pytest.mark.parametrize("arguments", ["x" * 100, ""], ids=["long", "empty"])
def test_tool_calls_count_against_the_size_limit(arguments: str) -> None:
    answer = StreamedAnswer(is_diffusing=False, max_bytes=10_000)
    with pytest.raises(MercuryError, match="10,000 bytes"):
        answer.feed(tool_call(arguments) * 10_000, 0.0)


def test_the_cost_of_long_arguments_grows_with_their_length_alone() -> None:
    """Measured in what is copied: joining with each piece would copy 50 GB here, and take minutes."""
    answer = StreamedAnswer(is_diffusing=False, max_bytes=20_000_000)
    piece = tool_call("x" * 100)
    for _ in range(100):
        answer.feed(piece * 300, 0.0)

    call = answer.tool_calls[0].function
    assert call is not None
    assert len(call.arguments) == 3_000_000
