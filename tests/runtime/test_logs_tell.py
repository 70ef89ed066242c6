"""A logger tells beforehand whether a line would be written, so that hot paths make no fields in vain."""

import io

from bridgehead.runtime import logs


def test_a_logger_tells_which_levels_it_writes() -> None:
    logs.configure("info", stream=io.StringIO())
    log = logs.logger("tests.telling")

    assert [level for level in logs.LEVELS if log.tells(level)] == ["info", "warn", "error"]
