"""The shape of a message: counted exactly in any pieces, and refused before anything is built."""

import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mcp import jsonrpc, shape
from bridgehead.mcp.shape import MAX_DIGITS, MAX_VALUES, Shape

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.text()
    | st.text(alphabet='\\"[]{},0nu', max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=40,
)


def count(value: Any) -> tuple[int, int]:
    """Count the values and digits of a decoded value, from what decoding built."""
    if isinstance(value, dict | list):
        inner = [count(one) for one in (value.values() if isinstance(value, dict) else value)]
        values = 1 + max(0, len(inner) - 1) + sum(values for values, _ in inner)
        return values, sum(digits for _, digits in inner)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return 0, sum(map(str.isdigit, str(value))) if is_number else 0


@given(value=VALUES, is_ascii=st.booleans(), cuts=st.lists(st.integers(0, 2000), max_size=8))
def test_what_is_counted_is_what_decoding_builds_however_the_bytes_are_split(
    value: Any, is_ascii: Any, cuts: list[int]
) -> None:
    data = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    counted = Shape()
    start = 0
    for cut in [*sorted(cuts), len(data)]:
        assert counted.add(data[start:cut])
        start = max(start, cut)

    assert counted.counts == count(value)


@pytest.mark.parametrize("slice_bytes", [1, 2, 3, 7])
def test_slices_of_any_size_count_the_same(slice_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape, "_SLICE_BYTES", slice_bytes)
    value = {'a\\"[': ['\\\\"', "\\", 'x"y', 12, [{}, {"b": [{}]}], "{[,"]}
    counted = Shape()

    assert counted.add(msgspec.json.encode(value))
    assert counted.counts == count(value)


def wrap(arguments: bytes) -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"x":%b}}}'
        % arguments
    )


DEEP = b"[" * 500 + b"]" * 500
TOO_MUCH = {
    "lists in lists": b"[%b0]" % (b"%b," % DEEP * 400),
    "empty objects": b"[%b0]" % (b"{}," * 400_000),
    "objects": b"[%b0]" % (b'{"a":{"b":{}}},' * 100_000),
    "numbers": b"[%b0]" % (b"1," * 400_000),
    "long numbers": b"[%b0]" % ((b"7" * 4000 + b",") * 300),
    "one number": b"7" * (MAX_DIGITS + 1),
    "texts": b"[%b0]" % (b'"",' * 400_000),
    "names": b"{%b}" % b",".join(b'"%d":0' % n for n in range(60_000)),
}
ALLOWED = {
    "text": b'"%b"' % (b"x" * 2_000_000),
    "text of brackets": b'"%b"' % (b"[{,1" * 500_000),
    "text of escapes": b'"%b"' % (rb"\\\"\n[" * 300_000),
    "as many values as fit": b"[%b0]" % (b"0," * (MAX_VALUES - 8)),
    "floats": b"[%b0]" % (b"0.12345678901234567," * (MAX_VALUES - 8)),
}


@pytest.mark.parametrize("arguments", TOO_MUCH.values(), ids=TOO_MUCH.keys())
def test_a_message_that_would_build_too_much_is_refused_with_its_id_and_builds_next_to_nothing(
    arguments: bytes,
) -> None:
    data = wrap(arguments)
    tracemalloc.start()
    try:
        refused = jsonrpc.decode(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert isinstance(refused, jsonrpc.Malformed)
    assert refused.id == 5
    assert refused.error.message == ("Invalid request: a message may have 50000 values and 1000000 digits")
    assert peak < 4 * 1024 * 1024 + len(data)


@pytest.mark.parametrize("arguments", ALLOWED.values(), ids=ALLOWED.keys())
def test_text_is_one_value_whatever_it_is_full_of(arguments: bytes) -> None:
    assert isinstance(jsonrpc.decode(wrap(arguments)), jsonrpc.Message)


def test_one_value_more_than_fits_is_refused() -> None:
    assert isinstance(jsonrpc.decode(wrap(b"[%b0]" % (b"0," * (MAX_VALUES - 7)))), jsonrpc.Malformed)


def test_a_batch_is_one_message() -> None:
    item = wrap(b"[%b0]" % (b"0," * (MAX_VALUES // 2)))

    assert isinstance(jsonrpc.decode(b"[%b,%b]" % (item, item)), jsonrpc.Malformed)
