"""SQLite budget: the books of one machine's processes, in the file that also holds their usage.

The thread of `SqliteUsage` runs each function inside a transaction that holds the file's write lock, so
reading a total and booking under it are atomic for all processes. `budget` has a running total for each
period and payer, so a reservation costs the same however much was spent; `sends` has the reservations.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from functools import partial

from bridgehead.runtime import logs

from .budget import Cap, OverBudget, ReleasedSends, Reservation, Spending
from .sqlite_usage import SqliteUsage
from .usage import SQLITE_NOW, Span, UsageCounts, add_usage

# A total never becomes negative, even if its row was deleted since the reservation.
_COMMIT = """
INSERT INTO budget VALUES (?1, ?2, max(0, ?3))
ON CONFLICT DO UPDATE SET committed_usd = max(0, round(committed_usd + ?3, 12))
"""
# Sends without a budget have no reservation; their uncertain money is one row per day, model and client. If
# the payer has released it, it starts again at zero.
_ADD_UNCERTAIN = f"""
INSERT INTO sends VALUES (?1, ?2, '', ?3, ?4, 1, ?5, 'open', {SQLITE_NOW})
ON CONFLICT DO UPDATE SET
    sends = iif(state = 'open', sends, 0) + 1,
    usd = iif(state = 'open', usd, 0) + excluded.usd,
    state = 'open'
"""  # noqa: S608 - our own text
# A reservation that is open past its time limit is uncertain: its process died, or moved the limit to now.
# The clock is SQLite's, that of the machine that all processes share. `?1 || '~'` sorts behind every day of a
# month: the same query serves a day and a month.
_SPENDING = f"""
SELECT
    (SELECT total(committed_usd) FROM budget WHERE period = ?1 AND payer = ?2),
    total(iif(reserved_until <= {SQLITE_NOW}, usd, 0)),
    total(iif(reserved_until > {SQLITE_NOW}, usd, 0))
FROM sends
WHERE state = 'open' AND day BETWEEN ?1 AND ?1 || '~' AND payer <> '' AND (?2 = '' OR payer = ?2)
"""  # noqa: S608 - our own text
_UNCERTAIN = f"state = 'open' AND reserved_until <= {SQLITE_NOW} AND day BETWEEN ?1 AND ?2"

_NEWEST_DAY = """
SELECT max(period) FROM budget
WHERE payer = '' AND length(period) = 10 AND period BETWEEN ?1 AND date(?1, ?2)
"""
BACK_DAYS = "+2 days"
"""How far a clock may go back. A day further ahead was a mistake, and must not hold the budget until then."""

_log = logs.logger("mercury.budget")


class SqliteBudget:
    """The books in the file of a `SqliteUsage`."""

    def __init__(self, store: SqliteUsage) -> None:
        self._store = store

    async def reserve(self, reservation: Reservation, caps: Sequence[Cap]) -> list[Spending]:
        """Book the worst case under every cap or under none."""
        booked = await self._store.submit(partial(_reserve, reservation=reservation, caps=caps))
        if isinstance(booked, OverBudget):
            raise booked
        self._store.note_write()
        return booked

    def finish(self, reservation: Reservation) -> None:
        """Book the outcome of a send with the next transaction, or a little later."""
        ending = self._store.submit(partial(_finish, reservation=reservation), is_urgent=False)
        ending.add_done_callback(_log_failure)

    async def spending(self, day: str, caps: Sequence[Cap]) -> list[Spending]:
        """Return the committed amount under each cap."""

        def read(connection: sqlite3.Connection) -> list[Spending]:
            spendings = []
            for cap in caps:
                row = connection.execute(_SPENDING, cap.key(day)).fetchone()
                spendings.append(Spending(cap, *(round(usd, 12) for usd in row)))
            return spendings

        return await self._store.submit(read)

    @property
    def problem(self) -> str:
        """Why nothing can be booked; empty as long as it can."""
        return self._store.problem

    async def check(self) -> None:
        """Raise `StorageError` if nothing can be booked."""
        await self._store.check()

    async def close(self) -> None:
        """The store is closed by its owner."""


def _log_failure(done: asyncio.Future[None]) -> None:
    # The reservation stays open and becomes uncertain: too much is committed, never too little.
    if not done.cancelled() and (failure := done.exception()) is not None:
        _log.warn("the end of a send was not booked", reason=str(failure))


def _reserve(
    connection: sqlite3.Connection, reservation: Reservation, caps: Sequence[Cap]
) -> list[Spending] | OverBudget:
    usd = reservation.worst_usd or 0.0
    # A clock that went back opens no day again: the books know which one has begun.
    newest = connection.execute(_NEWEST_DAY, (reservation.day, BACK_DAYS)).fetchone()[0]
    reservation.day = newest or reservation.day
    # The transaction of `SqliteUsage` holds the write lock, so no process can book between these sums and the
    # insert. Rounded to a trillionth of a dollar, against the noise of float sums.
    query = "SELECT total(committed_usd) FROM budget WHERE period = ? AND payer = ?"
    spendings = []
    for cap in caps:
        committed = round(connection.execute(query, cap.key(reservation.day)).fetchone()[0] + usd, 12)
        if committed > cap.limit:
            return OverBudget(cap)
        spendings.append(Spending(cap, committed))
    _commit(connection, reservation.day, reservation.payer, usd)
    connection.execute(
        f"INSERT INTO sends VALUES (?, ?, ?, ?, ?, 1, ?, 'open', {SQLITE_NOW} + ?)",  # noqa: S608 - our own text
        (
            *(reservation.id, reservation.day, reservation.payer, reservation.model, reservation.client),
            *(usd, reservation.seconds),
        ),
    )
    return spendings


def _finish(connection: sqlite3.Connection, reservation: Reservation) -> None:
    day, model, client = reservation.day, reservation.model, reservation.client
    if not reservation.is_booked:
        values = (f"{day} {model} {client}", day, model, client, reservation.worst_usd or 0.0)
        connection.execute(_ADD_UNCERTAIN, values)
        return
    row = connection.execute("SELECT usd, state FROM sends WHERE id = ?", (reservation.id,)).fetchone()
    if row is None:  # its outcome is booked already
        return
    # The payer may have released it before a late settlement: then nothing is committed for it.
    committed = row[0] if row[1] == "open" else 0.0
    if reservation.state == "uncertain":
        connection.execute(
            f"UPDATE sends SET reserved_until = min(reserved_until, {SQLITE_NOW}) WHERE id = ?",  # noqa: S608 - our own text
            (reservation.id,),
        )
        return
    settled = reservation.settled_usd or 0.0
    connection.execute("DELETE FROM sends WHERE id = ?", (reservation.id,))
    _commit(connection, day, reservation.payer, settled - committed)
    if settled:
        add_usage(connection, day, model, client, UsageCounts(cost_usd=settled))


def _commit(connection: sqlite3.Connection, day: str, payer: str, usd: float) -> None:
    """Add an amount, which may be negative, to the payer's own and the shared totals of day and month."""
    for period in (day, day[:7]):
        for whose in ("", payer):
            connection.execute(_COMMIT, (period, whose, usd))


def release_uncertain(connection: sqlite3.Connection, span: Span) -> list[ReleasedSends]:
    """Release all uncertain money of a span.

    A released send keeps its row: if its settlement still comes, it is charged in full.
    """
    days = (span.first, span.last)
    rows = connection.execute(
        f"SELECT day, payer, model, client, sends, usd FROM sends WHERE {_UNCERTAIN}",  # noqa: S608 - our own text
        days,
    ).fetchall()
    connection.execute(f"UPDATE sends SET state = 'released' WHERE {_UNCERTAIN}", days)  # noqa: S608 - our own text
    for day, payer, _, _, _, usd in rows:
        if payer:
            _commit(connection, day, payer, -usd)
    return [ReleasedSends(day, model, client, sends, usd) for day, _, model, client, sends, usd in rows]
