"""Timestamps: points in time as people and programs read them, in UTC."""

from __future__ import annotations


def format_utc(seconds: float) -> str:
    """Give seconds since 1970 as a date and time; what no calendar has, as it is."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s since 1970"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_duration(seconds: float) -> str:
    """Give a length of time in its largest unit, roughly."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{max(0, int(seconds))} s"
