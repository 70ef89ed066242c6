"""Parser: whatever bytes come, in whatever pieces, the server lives on and says the same.

The cases are those of `make adversary`, which also asks other servers what they make of them. What
`make fuzz` has found is tried in tests/fuzz.
"""

import asyncio
import gc

import pytest
from httptools import HttpRequestParser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.mcp.http.server.protocol import MAX_HEAD_BYTES, Http1Protocol
from tests.adversary.cases import CASES
from tests.fuzz.http_connection import check, replay

QUICK = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_does_not_depend_on_how_it_came(name: str) -> None:
    for seed in range(2):
        asyncio.run(check(CASES[name], seed))


@pytest.mark.parametrize("name", CASES)
def test_a_connection_leaves_nothing_behind_whatever_came(name: str) -> None:
    def count(kind: type) -> int:
        return sum(isinstance(one, kind) for one in gc.get_objects())

    gc.disable()
    gc.freeze()  # what others made is neither counted nor collected: it took 0.6 s a case
    try:
        asyncio.run(replay([CASES[name]]))
        assert count(HttpRequestParser) == 0  # which does not wait for somebody who collects
        gc.collect()
        assert count(Http1Protocol) == 0
    finally:
        gc.unfreeze()
        gc.enable()


@pytest.mark.parametrize("padding", [0, 3000])
@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 431)])
def test_the_limit_of_a_head_is_exact_wherever_it_begins(padding: int, over: int, status: int) -> None:
    before = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (padding, b"x" * padding)
    value = b"y" * (MAX_HEAD_BYTES - len("/") - len("x-a") + over)
    head = b"GET / HTTP/1.1\r\nX-A: %b\r\n\r\n" % value

    whole = asyncio.run(replay([before + head]))
    cut = asyncio.run(replay([before, head[:5000], head[5000:]]))

    assert whole.statuses == cut.statuses == [200, status]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Take cases and change a few bytes: put some in, take some out, write over some."""
    data = bytearray(b"".join(draw(st.lists(st.sampled_from(list(CASES.values())), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data)


@QUICK
@given(data=st.binary(max_size=400) | mutated(), seed=st.integers(0, 1000))
def test_no_bytes_break_a_connection(data: bytes, seed: int) -> None:
    asyncio.run(check(data, seed))
