"""Errors: what a bridge raises says what happened, what to do next, and whether trying again can help."""

import pytest

from bridgehead.runtime.errors import (
    BridgeError,
    InvalidArgument,
    NotFound,
    StorageError,
    TimedOut,
    Unavailable,
)
from bridgehead.runtime.settings import SettingError

KINDS: list[type[BridgeError]] = [BridgeError, InvalidArgument, NotFound, StorageError, TimedOut, Unavailable]
EVERY: list[type[BridgeError]] = [*KINDS, SettingError]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_reads_as_what_happened_and_what_to_do_next(kind: type[BridgeError]) -> None:
    error = kind("The game is not there.", next_step="Start it.", retry_after=2.5)

    assert str(error) == "The game is not there. Start it."
    assert (error.message, error.next_step, error.retry_after) == ("The game is not there.", "Start it.", 2.5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_without_a_next_step_is_its_message_alone(kind: type[BridgeError]) -> None:
    error = kind("The game is not there.")

    assert str(error) == "The game is not there."
    assert (error.next_step, error.retry_after) == ("", None)


def test_a_program_can_tell_errors_by_their_codes() -> None:
    assert len({kind.code for kind in EVERY}) == len(EVERY)


def test_only_what_may_pass_by_itself_is_worth_another_try() -> None:
    assert {kind for kind in EVERY if kind.is_transient} == {TimedOut, Unavailable}


def test_one_clause_catches_whatever_a_bridge_raises() -> None:
    assert all(issubclass(kind, BridgeError) for kind in EVERY)
