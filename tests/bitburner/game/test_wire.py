"""Failures on their way from the owner of a game to its guests: each arrives as what it was."""

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
    arrived = wire.decode_bridge_error("getFile", wire.decode_failure(wire.encode_bridge_error(error)))

    assert arrived is not None
    assert type(arrived) is type(error)
    assert arrived.message == error.message


@pytest.mark.parametrize(
    "error",
    ["File doesn't exist", {"code": 7, "message": "no"}, {"code": 7, "message": "no", "data": {"a": 1}}],
)
def test_an_error_of_the_game_is_passed_on_as_it_came(error: object) -> None:
    failure = wire.decode_failure(msgspec.json.encode(error))

    assert wire.decode_bridge_error("getFile", failure) is None
    assert wire.decode_failure(wire.reencode_failure(failure)) == failure


def test_an_error_that_cannot_be_read_is_an_error_all_the_same() -> None:
    assert "cannot be read" in wire.decode_failure(b"{").message
