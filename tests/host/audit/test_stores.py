"""Stores: the audit keeps what is new enough, and each line once."""

from pathlib import Path

from bridgehead.host.audit.stores import SqliteAudit
from bridgehead.host.audit.trail import Line, Query

NOW = 1_800_000_000.0


async def test_what_is_too_old_or_too_much_is_deleted(tmp_path: Path) -> None:
    store = SqliteAudit(tmp_path)
    lines = [Line(NOW + number, "ann", "tool", "ok", key=str(number)) for number in range(20)]
    await store.write(lines)
    await store.write(lines[:5])  # sent again
    await store.prune(NOW + 10, 100)
    newer = [line.at - NOW for line in store.find(Query())]
    await store.prune(0.0, 3)
    kept = [line.at - NOW for line in store.find(Query())]
    store.close()

    assert newer == [float(number) for number in range(19, 9, -1)]
    assert kept == [19.0, 18.0, 17.0]
