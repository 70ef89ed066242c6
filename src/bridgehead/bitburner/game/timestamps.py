"""Timestamps: format points in time and durations, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def format_utc(seconds: float) -> str:
    """Format seconds since 1970 in ISO 8601; a value outside the calendar as a number."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s since 1970"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_duration(seconds: float) -> str:
    """Format a duration in its largest unit, rounded down."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{max(0, int(seconds))} s"
