"""Log settings: one level under two names."""

import io

import pytest

from bridgehead.runtime.log_settings import LogSettings
from bridgehead.runtime.settings import SettingError


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        ({}, "info"),
        ({"LOG_LEVEL": "debug"}, "debug"),
        ({"MCP_LOG_LEVEL": "error"}, "error"),
        ({"LOG_LEVEL": "warn", "MCP_LOG_LEVEL": "debug"}, "warn"),
    ],
)
def test_log_level_counts_before_its_other_name(environment: dict[str, str], level: str) -> None:
    assert LogSettings(environment).level == level


def test_a_level_that_is_none_is_refused_by_its_name() -> None:
    with pytest.raises(SettingError, match="MCP_LOG_LEVEL is 'loud'"):
        LogSettings({"MCP_LOG_LEVEL": "loud"})


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"LOG_LEVEL": "info", "MCP_LOG_LEVEL": "debug"}, True),
        ({"LOG_LEVEL": "debug", "MCP_LOG_LEVEL": "debug"}, False),
        ({"MCP_LOG_LEVEL": "debug"}, False),
    ],
)
def test_a_difference_is_said(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, said: bool
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    LogSettings(environment).configure_logs()
    assert ("LOG_LEVEL and MCP_LOG_LEVEL differ" in stream.getvalue()) == said


def test_on_a_terminal_lines_are_for_people_unless_the_setting_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    both = {"LOG_LEVEL": "info", "MCP_LOG_LEVEL": "debug"}
    shown = {}
    for form in ("", "json"):
        stream = Terminal()
        monkeypatch.setattr("sys.stderr", stream)
        LogSettings({**both, "LOG_FORMAT": form}).configure_logs()
        shown[form] = stream.getvalue()
    assert (shown[""][0] == "{", shown["json"][0] == "{") == (False, True)
