"""Showing: each setting with its value and where that comes from, and never a secret."""

import io

from rich.console import Console

from bridgehead.runtime import env_file, showing
from bridgehead.runtime.settings import TEXT, Setting, Settings, whole


class Some(Settings):
    year = Setting("SOME_YEAR", whole(2015, 2099), 2025, "The [year].")
    place = Setting("SOME_PLACE", TEXT, None, "Where.", shown="here")
    key = Setting("SOME_KEY", TEXT, None, "What opens it.", secret=True)


ENVIRONMENT = env_file.merge({"SOME_KEY": "sk-secret"}, {"SOME_YEAR": "2024"})


def test_a_finding_names_what_is_set_and_where_and_counts_the_rest() -> None:
    found = showing.finding(Some(ENVIRONMENT), ENVIRONMENT)

    assert (found.what, found.verdict) == ("settings", "right")
    assert found.text == (
        "SOME_YEAR=2024 (from .env), SOME_KEY=(set) (from the environment), 1 at their defaults"
    )


def test_a_table_has_all_of_them() -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(showing.table(Some(ENVIRONMENT), ENVIRONMENT))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.getvalue().splitlines()]

    assert ["SOME_YEAR", "2024", ".env", "The [year]."] in rows
    assert ["SOME_PLACE", "here", "default", "Where."] in rows
    assert ["SOME_KEY", "(set)", "the environment", "What opens it."] in rows
