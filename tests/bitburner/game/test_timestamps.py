"""Moments: a point in time is a date in UTC, whatever a game sends."""

from bridgehead.bitburner.game import timestamps


def test_a_moment_is_a_date_in_utc() -> None:
    assert timestamps.format_utc(0.25) == "1970-01-01T00:00:00.250Z"


def test_what_no_calendar_has_is_given_as_it_is() -> None:
    assert timestamps.format_utc(1e30) == "1e+30 s since 1970"
    assert timestamps.format_utc(float("nan")) == "nan s since 1970"
