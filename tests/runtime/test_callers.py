"""Callers: what those who do not run the machine may know of it."""

import logging

import pytest

from bridgehead.runtime import logs
from bridgehead.runtime.callers import hide_folder, is_operator, word_error
from bridgehead.runtime.errors import BridgeError, NotFound, StorageError

PATH = "/srv/aoc/speeds/day01.json"
BROKEN = StorageError(
    f"{PATH} cannot be written: Read-only file system (/srv/aoc/speeds).", next_step="Make room.", path=PATH
)


def test_without_a_host_that_says_otherwise_a_caller_sees_everything() -> None:
    """A stdio server has one user, whose own machine this is."""
    assert is_operator.get()
    assert word_error(BROKEN) == str(BROKEN)


def test_others_see_the_name_of_a_file_and_the_log_has_its_folder(caplog: pytest.LogCaptureFixture) -> None:
    token = is_operator.set(False)
    logs.add_handler(caplog.handler)  # a log that another test has configured does not reach the root
    try:
        with caplog.at_level(logging.WARNING, logger=logs.ROOT):
            shown = word_error(BROKEN)
        assert shown == "day01.json cannot be written: Read-only file system (its folder). Make room."
        assert word_error(BridgeError("/srv is no path of ours.")) == "/srv is no path of ours."
        missing = NotFound("There is none.", next_step=f"Put it into {PATH}.", path=PATH)
        assert word_error(missing) == "There is none. Put it into day01.json."
        assert hide_folder("/ is full", "/name") == "/ is full"
    finally:
        is_operator.reset(token)
        logs.remove_handler(caplog.handler)
    assert PATH in caplog.text or any(PATH in str(vars(record)) for record in caplog.records)
