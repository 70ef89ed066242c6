"""Failures on their way from the owner of a game to its guests: each arrives as what it was."""

import msgspec
import pytest

from bridgehead.bitburner import relay_errors, wire
from bridgehead.bitburner.errors import Disconnected, NotConnected, Unanswered
from bridgehead.runtime.errors import BridgeError


@pytest.mark.parametrize(
    "error",
    [
        Disconnected("getFile"),
        Unanswered("getFile", 1.25),
        NotConnected("No game.", next_step="Connect one."),
    ],
)
def test_a_failure_of_the_owner_arrives_as_the_same_failure(error: BridgeError) -> None:
    arrived = relay_errors.read("getFile", wire.failure(relay_errors.written(error)))

    assert arrived is not None
    assert type(arrived) is type(error)
    assert arrived.message == error.message


@pytest.mark.parametrize(
    "error",
    ["File doesn't exist", {"code": 7, "message": "no"}, {"code": 7, "message": "no", "data": {"a": 1}}],
)
def test_an_error_of_the_game_is_passed_on_as_it_came(error: object) -> None:
    failure = wire.failure(msgspec.json.encode(error))

    assert relay_errors.read("getFile", failure) is None
    assert wire.failure(relay_errors.passed_on(failure)) == failure


def test_an_error_that_cannot_be_read_is_an_error_all_the_same() -> None:
    assert "cannot be read" in wire.failure(b"{").message
