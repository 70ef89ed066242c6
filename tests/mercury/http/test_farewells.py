"""Farewells: what a server says when it goes is found, wherever the bytes are cut; all else stays."""

from hyperframe.frame import DataFrame, Frame, GoAwayFrame, PingFrame, WindowUpdateFrame
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mercury.http.farewells import Farewell, Farewells


def goodbye(last: int, code: int, reason: bytes) -> GoAwayFrame:
    frame = GoAwayFrame(0)
    frame.last_stream_id, frame.error_code, frame.additional_data = last, code, reason
    return frame


FRAMES: st.SearchStrategy[Frame] = st.one_of(
    st.builds(lambda data: DataFrame(1, data), st.binary(max_size=300)),
    st.builds(lambda data: PingFrame(0, data), st.binary(min_size=8, max_size=8)),
    st.builds(lambda number: WindowUpdateFrame(3, number), st.integers(1, 2**31 - 1)),
    st.builds(goodbye, st.integers(0, 2**31 - 1), st.integers(0, 13), st.binary(max_size=50)),
)


@given(frames=st.lists(FRAMES, max_size=8), cuts=st.lists(st.integers(1, 40), max_size=60))
def test_farewells_are_taken_out_however_the_bytes_come(frames: list[Frame], cuts: list[int]) -> None:
    wire = b"".join(frame.serialize() for frame in frames)
    farewells = Farewells()
    passed, found = b"", []
    while wire:
        size = cuts.pop() if cuts else 16_384
        piece, wire = wire[:size], wire[size:]
        rest, heard = farewells.feed(piece)
        passed += rest
        found += heard

    others = [frame for frame in frames if not isinstance(frame, GoAwayFrame)]
    goodbyes = [frame for frame in frames if isinstance(frame, GoAwayFrame)]
    assert passed == b"".join(frame.serialize() for frame in others)
    assert found == [Farewell(frame.last_stream_id, frame.error_code) for frame in goodbyes]


def test_one_that_is_too_short_to_be_one_is_left_to_those_who_refuse_it() -> None:
    broken = b"\x00\x00\x04\x07\x00\x00\x00\x00\x00" + b"abcd"

    assert Farewells().feed(broken) == (broken, [])
