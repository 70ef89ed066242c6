"""Leftovers: what could not be written to the database is in files, whole, or in the log."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from bridgehead.mercury.calling.usage import Key, UsageCounts
from bridgehead.mercury.calling.usage_spool import UsageSpool

COUNTS: dict[Key, UsageCounts] = {
    ("2026-09-21", "mercury-2", "mé"): UsageCounts(calls=2, total_tokens=2**60, cost_usd=0.1),
    ("2026-09-21", "coder", ""): UsageCounts(errors=1),
}


def test_a_batch_is_read_as_it_was_kept_until_it_is_removed(tmp_path: Path) -> None:
    number = uuid4()
    UsageSpool(lambda: tmp_path).keep(number, COUNTS)
    next_run = UsageSpool(lambda: tmp_path)

    assert next_run.read() == {number: COUNTS}
    next_run.remove(number)
    next_run.remove(number)  # by another worker at the same time
    assert next_run.read() == {}


def test_a_file_that_cannot_be_read_keeps_nobody_from_the_others_and_stays(tmp_path: Path) -> None:
    leftovers = UsageSpool(lambda: tmp_path)
    leftovers.keep(UUID(int=9), COUNTS)
    for name in (f"{UUID(int=1)}.json", "notes.json"):
        (tmp_path / "unwritten-usage" / name).write_bytes(b'[["2026-')

    assert leftovers.read() == {UUID(int=9): COUNTS}
    assert len(list((tmp_path / "unwritten-usage").iterdir())) == 3


def test_without_a_folder_the_counts_are_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    leftovers = UsageSpool(lambda: tmp_path / "missing" / "folder")

    leftovers.keep(uuid4(), COUNTS)

    assert leftovers.read() == {}
    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "usage cannot be written")
    assert '"total_tokens":1152921504606846976' in vars(record)["fields"]["counts"]
