"""PostgreSQL tasks: the tasks of all replicas, so that results outlive the machine that made them.

Every process renews a lease every few seconds. An unfinished task whose process has no lease is interrupted.
The database's clock decides on leases, so the clocks of the machines need not agree.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec.structs import astuple

from bridgehead.mcp.limits import Limits
from bridgehead.mcp.tasks.record import Kept, TaskRecord, TooManyTasks, check_new_task, check_payload

from .. import logs
from ..errors import BridgeError
from ..stores import postgres

RENEW_SECONDS = 10.0
LEASE_SECONDS = 30.0
_FIELDS = "id, owner, caller, created, updated, seconds, status, message, payload"
_RUNNING = "status in ('working', 'input_required')"
# By the database's clock, like the comparison in `_READ`.
_RENEW = """
insert into host_task_runners (runner, leased_until) values ($1, now() + make_interval(secs => $2))
on conflict (runner) do update set leased_until = excluded.leased_until"""
_INSERT = f"""
insert into host_tasks ({_FIELDS}, expires, runner)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (id) do nothing"""  # noqa: S608 - made of the names above
# A result counts against the limits from when it is stored. Replicas that store at the same moment can pass a
# limit by one each; that is cheaper than a lock that they all wait for.
_COUNT = """
select count(*) filter (where caller = $1) as own_tasks,
    coalesce(sum(length(payload)) filter (where caller = $1), 0)::bigint as own_bytes,
    count(*) as all_tasks, coalesce(sum(length(payload)), 0)::bigint as all_bytes
from host_tasks where expires > $2 and id <> $3"""
# A missing lease counts as expired; `now()` is the database's clock.
_READ = f"""
select {_FIELDS}, {_RUNNING} and not exists (
    select from host_task_runners
    where host_task_runners.runner = host_tasks.runner and leased_until > now()
) as is_interrupted
from host_tasks where id = $1 and expires > $2"""  # noqa: S608
# Only an unfinished task changes: the first final state counts, however often one is written.
_FINISH = f"""
update host_tasks set status = $2, message = $3, payload = $4, updated = $5
where id = $1 and expires > $6 and {_RUNNING}
returning id"""  # noqa: S608

log = logs.logger("tasks")


class PostgresTaskStore:
    """Tasks in a database that several machines share."""

    def __init__(self, url: str, clock: Callable[[], float] = time.time) -> None:
        self._url = url
        self._clock = clock
        self._runner = secrets.token_hex(8)
        self._limits = Limits()
        self._database: postgres.Database
        self._renewing: asyncio.Task[None]

    async def open(self, limits: Limits) -> None:
        """Connect, and take a lease as soon as that is possible."""
        self._limits = limits
        self._database = await postgres.acquire(self._url)
        self._renewing = asyncio.create_task(self._keep_lease())

    async def close(self, left: Sequence[TaskRecord] = ()) -> None:
        """Write these final states, release the lease, and disconnect."""
        self._renewing.cancel()
        try:
            for record in left:
                with suppress(TooManyTasks):  # not stored: the task reads as interrupted
                    await self.write(record)
            await self._database.writer.run(
                lambda writer: writer.execute("delete from host_task_runners where runner = $1", self._runner)
            )
        except BridgeError as problem:
            log.warn("tasks could not be stored before the end", tasks=len(left), problem=problem.message)
        finally:
            await postgres.release(self._database)

    async def create(self, record: TaskRecord) -> None:
        """Store a new task, which this process runs."""
        try:
            check_new_task(self._limits, *await self._count(record))
            await self._renew()  # before the task can be read: it must not look interrupted
            row = (*astuple(record), record.expires, self._runner)
            await self._database.writer.run(lambda writer: writer.execute(_INSERT, *row))
        except BridgeError as problem:  # makes the manager answer it as a plain call, if the tool allows that
            raise TooManyTasks(f"No task can be made right now: {problem.message}") from problem

    async def read(self, task_id: str) -> TaskRecord | None:
        """Return a task; it is interrupted if its process no longer has a lease."""
        now = self._clock()
        row = await self._database.writer.run(lambda writer: writer.fetchrow(_READ, task_id, now))
        if row is None:
            return None
        *fields, is_interrupted = row
        record = TaskRecord(*fields)
        return record.interrupt(now) if is_interrupted else record

    async def write(self, record: TaskRecord) -> bool:
        """Store a task's final state, unless it has one."""
        if record.payload:
            check_payload(self._limits, record.payload, *await self._count(record))
        state = (record.id, record.status, record.message, record.payload, record.updated, self._clock())
        return await self._database.writer.run(lambda writer: writer.fetchval(_FINISH, *state)) is not None

    async def forget(self, task_id: str) -> None:
        """Remove a task."""
        await self._database.writer.run(
            lambda writer: writer.execute("delete from host_tasks where id = $1", task_id)
        )

    async def _count(self, record: TaskRecord) -> tuple[Kept, Kept]:
        """Count the tasks and bytes of the record's caller and of all, without the record itself."""
        counted = (record.caller, self._clock(), record.id)
        row = await self._database.writer.run(lambda writer: writer.fetchrow(_COUNT, *counted))
        assert row is not None  # noqa: S101 - an aggregate always has one row
        return Kept(row["own_tasks"], row["own_bytes"]), Kept(row["all_tasks"], row["all_bytes"])

    # --- the lease -----------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        lease = (self._runner, LEASE_SECONDS)
        await self._database.writer.run(lambda writer: writer.execute(_RENEW, *lease))

    async def _keep_lease(self) -> None:
        while True:
            with suppress(BridgeError):  # retried long before the lease expires
                await self._renew()
                await self._remove_expired()
            await asyncio.sleep(RENEW_SECONDS)

    async def _remove_expired(self) -> None:
        now = self._clock()
        await self._database.writer.run(
            lambda writer: writer.execute("delete from host_tasks where expires <= $1", now)
        )
        # A missing lease reads like an expired one, so old rows are not needed.
        await self._database.writer.run(
            lambda writer: writer.execute(
                "delete from host_task_runners where leased_until < now() - interval '1 day'"
            )
        )
