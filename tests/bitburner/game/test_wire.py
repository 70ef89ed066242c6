"""The wire: half a character never costs a frame, and failures reach guests as what they were."""

import json

import msgspec
import pytest

from bridgehead.bitburner.errors import Disconnected, NotConnected, ReplyTimeout
from bridgehead.bitburner.game import wire
from bridgehead.runtime.errors import BridgeError


@pytest.mark.parametrize(
    "error",
    [
        Disconnected("getFile"),
        ReplyTimeout("getFile", 1.25),
        NotConnected("No game.", next_step="Connect one."),
    ],
)
def test_a_failure_of_the_owner_arrives_as_the_same_failure(error: BridgeError) -> None:
    arrived = wire.decode_bridge_error(wire.decode_failure(wire.encode_bridge_error(error)))

    assert arrived is not None
    assert type(arrived) is type(error)
    assert arrived.message == error.message


@pytest.mark.parametrize(
    "error",
    ["File doesn't exist", {"code": 7, "message": "no"}, {"code": 7, "message": "no", "data": {"a": 1}}],
)
def test_an_error_of_the_game_is_passed_on_as_it_came(error: object) -> None:
    failure = wire.decode_failure(msgspec.json.encode(error))

    assert wire.decode_bridge_error(failure) is None
    assert wire.decode_failure(wire.reencode_failure(failure)) == failure


def test_an_error_that_cannot_be_read_is_an_error_all_the_same() -> None:
    assert "cannot be read" in wire.decode_failure(b"{").message


@pytest.mark.parametrize(
    ("escaped", "expected"),
    [
        (rb"a\ud83db", "a\U0010d83db"),
        (rb"a\ude00", "a\U0010de00"),
        (rb"\ud83d\ud83d\ude00", "\U0010d83d\U0001f600"),
        (rb"\ud83d\u0041", "\U0010d83dA"),
        (rb"\\ud83d", "\\ud83d"),
        (rb"\\\ud83d", "\\\U0010d83d"),
        (rb"\uD83D\uDE00 \uDE00", "\U0001f600 \U0010de00"),
    ],
)
def test_half_a_surrogate_pair_has_a_stand_in_and_goes_back_as_it_came(escaped: bytes, expected: str) -> None:
    halves: set[str] = set()
    reply = wire.decode_reply(b'{"jsonrpc":"2.0","id":7,"result":"' + escaped + b'"}', halves)

    assert reply is not None
    assert reply.id == 7
    content = msgspec.json.decode(reply.result)  # type: ignore[arg-type]
    assert content == expected
    assert json.loads(wire.encode_params(content, halves)) == json.loads(b'"' + escaped + b'"')


def test_character_that_looks_like_a_stand_in_is_not_changed() -> None:
    assert json.loads(wire.encode_params("\U0010d83d", {"\U0010de00"})) == "\U0010d83d"


def test_what_is_no_json_stays_no_reply() -> None:
    for frame in (b"", b"{", rb'{"id":1,"result":"\ud83d', rb"\ud83d"):
        assert wire.decode_reply(frame, set()) is None


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":12,"result":"' + b"x" * 500 + b'"}', 12),
        (b'{"jsonrpc":"2.0","result":"' + b"x" * 500 + b'","id":12}', 12),
        (b'{"jsonrpc":"2.0","result":"' + b"x" * 500 + b'"}', None),
        (b'{"jsonrpc":"2.0","result":"' + b"x" * 500 + b'\\"id\\":3}', None),
    ],
)
def test_the_id_of_a_reply_is_found_without_decoding_it(frame: bytes, expected: int | None) -> None:
    assert wire.find_request_id(frame) == expected
