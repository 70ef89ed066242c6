"""`bridgehead db`: the tables, from the command line."""

import re

import pytest

from bridgehead.commands import db
from bridgehead.runtime.errors import BridgeError


@pytest.fixture(params=["database_url", "pooled_url"], ids=["postgresql", "pgbouncer"])
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    return {"BRIDGEHEAD_DATABASE_URL": request.getfixturevalue(request.param)}


def test_status_asks_for_migrate_and_migrate_does_it_once(
    environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    behind = db.main(["status"], environment)
    told = capsys.readouterr().out
    migrated = db.main(["migrate"], environment)
    applied = capsys.readouterr().out
    db.main(["migrate"], environment)
    again = capsys.readouterr().out
    current = db.main(["status"], environment)

    assert (behind, migrated, current) == (1, 0, 0)
    assert re.search(r"aoc +version 0 of \d+, behind", told)
    assert "Run `bridgehead db migrate`." in told
    assert "applied aoc 0001 records" in applied
    assert again == "Nothing to do: every table has its newest version.\n"


def test_without_a_database_it_says_which_setting_is_missing() -> None:
    with pytest.raises(BridgeError, match="BRIDGEHEAD_DATABASE_URL is not set"):
        db.main(["status"], {})


def test_a_database_that_is_not_there_is_named_without_its_password(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(BridgeError) as failure:
        db.main(["status"], {"BRIDGEHEAD_DATABASE_URL": "postgresql://me:hunter2@127.0.0.1:9/none"})

    assert "hunter2" not in str(failure.value)
