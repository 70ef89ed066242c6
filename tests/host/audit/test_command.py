"""Audit command: times are read as people write them."""

import pytest

from bridgehead.host.audit.command import read_time
from bridgehead.runtime.errors import InvalidArgument

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("12h", NOW - 43_200),
        ("today", 1_799_971_200.0),
        ("yesterday", 1_799_884_800.0),
        ("2027-01-15", 1_799_971_200.0),
        ("2027-01-15T01:00+01:00", 1_799_971_200.0),
        ("", None),
    ],
)
def test_a_time_is_read_as_people_write_it(text: str, seconds: float | None) -> None:
    assert read_time(text, NOW, "--since") == seconds


@pytest.mark.parametrize("text", ["soon", "12", "h", "-1h", "2027-13-01", "999999d"])
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"--since is .*, which is no time"):
        read_time(text, NOW, "--since")
