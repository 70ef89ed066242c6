"""Any bytes: whatever a client sends, the answer is valid JSON-RPC or, where none is due, nothing.

Properties of the dispatcher's `receive`: it never raises, never hangs, and leaves nothing in flight.
"""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.mcp import Arguments, Bridge, Context
from bridgehead.mcp.revisions import HANDSHAKE
from tests.support.any_bytes import ERAS, META, METHODS, VALID, Session, is_answer

SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])

numbers = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([10**400, -(2**63), 2**64, -0.0]),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=8))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
known_names = st.sampled_from(
    ["wish", "form", "rounds", "everything", "asking_prompt", "asking://roots", "x"]
)


async def holds(era: str | None, data: bytes, *, due: bool | None = None) -> Any:
    """Check what is true of any bytes at all, and return their answer."""
    session = Session(era)
    answer = await session.receive(data)
    assert answer is None or is_answer(answer)
    assert due is None or (answer is not None) == due, answer
    assert session.is_at_rest()
    return answer


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a request of a real method in which some members are wrong."""
    method = draw(st.sampled_from([*METHODS, "nonsense"]))
    params: dict[str, Any] = {**VALID, "notifications": {"toolsListChanged": True}, "name": draw(known_names)}
    meta: dict[str, Any] = dict(META) if draw(st.booleans()) else {}
    for name in draw(st.lists(st.sampled_from(sorted(params)), max_size=3)):
        params[name] = draw(values)
    for name in draw(st.lists(st.sampled_from(sorted(META)), max_size=2)):
        meta[name] = draw(values)
    params["_meta"] = meta if draw(st.booleans()) or meta else draw(values)
    return {
        "jsonrpc": "2.0",
        "id": draw(st.one_of(st.integers(-(2**53), 2**53), st.text(max_size=5))),
        "method": method,
        "params": draw(st.one_of(st.just(params), st.just(params), values)),
    }


def text_of(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("era", ERAS)
@SETTINGS
@given(data=st.binary(max_size=200))
async def test_any_bytes_are_answered_or_ignored(era: str | None, data: bytes) -> None:
    await holds(era, data)


@pytest.mark.parametrize("era", ERAS)
@SETTINGS
@given(value=values)
async def test_any_json_is_answered_or_ignored(era: str | None, value: Any) -> None:
    await holds(era, text_of(value))


@pytest.mark.parametrize("era", ERAS)
@SETTINGS
@given(request=requests())
async def test_a_request_with_anything_wrong_in_it_is_answered(
    era: str | None, request: dict[str, Any]
) -> None:
    answer = await holds(era, text_of(request), due=True)

    assert answer["id"] in (request["id"], None)
    assert answer["id"] is not None or answer["error"]["code"] in (-32700, -32600)


@pytest.mark.parametrize("era", ERAS)
@SETTINGS
@given(request=requests())
async def test_a_notification_with_anything_wrong_in_it_is_ignored(
    era: str | None, request: dict[str, Any]
) -> None:
    del request["id"]
    await holds(era, text_of(request), due=False)


@pytest.mark.parametrize("era", ERAS)
@SETTINGS
@given(request=requests(), members=st.dictionaries(st.sampled_from(["id", "method", "jsonrpc"]), values))
async def test_an_envelope_with_anything_wrong_in_it_is_answered_or_ignored(
    era: str | None, request: dict[str, Any], members: dict[str, Any]
) -> None:
    await holds(era, text_of(request | members))


@SETTINGS
@given(batch=st.lists(st.one_of(requests(), values), max_size=4))
async def test_any_batch_is_answered_or_ignored(batch: list[Any]) -> None:
    await holds("2025-03-26", text_of(batch))


@SETTINGS
@given(request=requests(), place=st.integers(0, 400), byte=st.binary(max_size=2))
async def test_a_request_with_any_bytes_lost_or_changed_is_answered_or_ignored(
    request: dict[str, Any], place: int, byte: bytes
) -> None:
    data = text_of(request)
    await holds("2025-11-25", data[:place] + byte + data[place + 1 :])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("place", ["params", "arguments", "_meta", "id", "extra"])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
async def test_a_hundred_thousand_brackets_are_answered_wherever_they_stand(
    era: str | None, place: str, opening: bytes, closing: bytes
) -> None:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "form", "_meta": META, "arguments": {}},
    }
    whole = request if place in ("params", "id", "extra") else request["params"]
    assert isinstance(whole, dict)
    whole[place] = "DEEP"
    deep = opening * 100_000 + b"1" + closing * 100_000
    await holds(era, msgspec.json.encode(request).replace(b'"DEEP"', deep), due=True)


async def test_an_id_that_comes_again_while_it_is_in_flight_leaves_nothing_behind() -> None:
    session = Session("2025-03-26")
    data = b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"asking://roots"}}'
    answers = await session.receive(b"[%b,%b,%b]" % (data, data, data))

    assert [answer["error"]["code"] for answer in answers] == [-32603, -32600, -32600]
    assert session.is_at_rest()


class Anything(Arguments):
    value: Any


def echoing() -> Bridge[None]:
    bridge: Bridge[None] = Bridge("echo", "1")

    @bridge.tool("Say it back.")
    async def echo(args: Anything, ctx: Context[None]) -> str:
        return msgspec.json.encode(args.value).decode()

    return bridge


numbers_of_64_bits = st.one_of(
    st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers_of_64_bits, st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=12,
)


@pytest.mark.parametrize("era", [*HANDSHAKE, "2026-07-28"])
@SETTINGS
@given(value=plain)
async def test_any_json_in_the_arguments_of_a_tool_comes_back_intact(era: str, value: Any) -> None:
    session = Session(era, echoing())
    params = {"name": "echo", "arguments": {"value": value}, "_meta": META if era == "2026-07-28" else {}}
    answer = await session.receive(
        text_of({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    )

    assert json.loads(answer["result"]["content"][0]["text"]) == value
    assert session.is_at_rest()
