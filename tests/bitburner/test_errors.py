"""Errors of the game's bridge: each has its code, its words, and what to do next."""

import pytest

from bridgehead.bitburner import errors
from bridgehead.runtime.errors import BridgeError


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (errors.Disconnected("getFile"), "disconnected", "while getFile waited for its answer."),
        (errors.Disconnected("getFile", "too large"), "disconnected", "answer: too large."),
        (errors.ReplyTimeout("getFile", 1.234), "timeout", "did not answer getFile within 1.23 s"),
        (
            errors.ReplyTooLarge("getFile", 2000, 1000),
            "reply_too_large",
            "has 2,000 bytes; at most 1,000",
        ),
        (errors.InvalidReply("getFile", "no JSON"), "odd_reply", "cannot be read: no JSON"),
    ],
)
def test_an_error_says_what_happened_and_what_to_do(error: BridgeError, code: str, words: str) -> None:
    assert error.code == code
    assert words in str(error)
    assert error.next_step
