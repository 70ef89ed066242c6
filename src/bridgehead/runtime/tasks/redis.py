"""Tasks in Redis, shared by the processes of all replicas.

Every process that runs tasks says each two seconds that it lives. A task whose process no longer does reads
as interrupted, unless we have only just reached Redis ourselves: then others may be about to say so too.
Messages wait in a list for the process that runs a task, which a notice tells to look. They stay there until
it has heard them, and each has a name of its own: one that comes twice is heard once.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from bridgehead.mcp.errors import OVERLOADED, ProtocolError
from bridgehead.mcp.limits import Limits
from bridgehead.mcp.tasks.record import (
    MOST_MESSAGES,
    Kept,
    TaskRecord,
    TooManyTasks,
    check_messages,
    check_new_task,
    check_payload,
)
from bridgehead.mcp.tasks.store import TaskHearer

from ..stores import Script, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..stores.redis import Redis

BEAT_SECONDS = 2.0
LIFE_SECONDS = 10.0
"""How long a process counts as living that says nothing."""
_SLACK_SECONDS = 60.0
"""How much longer than needed Redis keeps a task: who counts them has to find it."""
_INBOX_SECONDS = 60.0
"""How long messages wait for a process."""
_MOST_UNMADE = 1000
_MOST_HEARD = 10_000
"""Names of messages that are remembered."""
_PREFIX = "bridgehead:tasks:"
_EXPIRY, _SIZES, _KEPT = f"{_PREFIX}expiry", f"{_PREFIX}sizes", f"{_PREFIX}kept"
_CHANGED = "tasks:changed"

# What is kept is counted in one hash, for everybody and for each caller. A task leaves the count when it is
# forgotten or its time is over, which every script looks for first.
_COMMON = """
local function count(caller, tasks, bytes)
  for _, whose in ipairs({'', caller}) do
    for field, by in pairs({['n:' .. whose] = tasks, ['b:' .. whose] = bytes}) do
      if redis.call('HINCRBY', KEYS[4], field, by) <= 0 then redis.call('HDEL', KEYS[4], field) end
    end
  end
end
local function forget(id)
  local known = redis.call('HGET', KEYS[3], id)
  if known then
    local size, caller = known:match('^(%d+) (.*)$')
    count(caller, -1, 0 - tonumber(size))
    redis.call('HDEL', KEYS[3], id)
  end
  redis.call('ZREM', KEYS[2], id)
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[2], 'LIMIT', 0, 100)) do forget(id) end
local function kept(whose)
  local found = redis.call('HMGET', KEYS[4], 'n:' .. whose, 'b:' .. whose)
  return tonumber(found[1] or '0'), tonumber(found[2] or '0')
end
local id = ARGV[1]
"""
_CREATE = Script(
    _COMMON
    + """
if redis.call('HEXISTS', KEYS[3], id) == 1 then return 0 end -- it was sent twice
local caller, own, all = ARGV[3], {kept(ARGV[3])}, {kept('')}
if own[1] >= tonumber(ARGV[4]) or all[1] >= tonumber(ARGV[5]) then return {own[1], own[2], all[1], all[2]} end
redis.call('HSET', KEYS[1], 'record', ARGV[6], 'runner', ARGV[7], 'open', '1')
redis.call('PEXPIRE', KEYS[1], ARGV[8])
redis.call('ZADD', KEYS[2], ARGV[9], id)
redis.call('HSET', KEYS[3], id, '0 ' .. caller)
count(caller, 1, 0)
return 0
"""
)
_WRITE = Script(
    _COMMON
    + """
if redis.call('HGET', KEYS[1], 'open') ~= '1' or not redis.call('ZSCORE', KEYS[2], id) then return 0 end
local caller, size = ARGV[3], tonumber(ARGV[4])
local before = tonumber(redis.call('HGET', KEYS[3], id):match('^%d+'))
local own, all = {kept(caller)}, {kept('')}
own[2], all[2] = own[2] - before, all[2] - before
if size > 0 and (own[2] + size > tonumber(ARGV[5]) or all[2] + size > tonumber(ARGV[6])) then
  return {own[1], own[2], all[1], all[2]}
end
redis.call('HSET', KEYS[1], 'record', ARGV[7], 'open', ARGV[8])
redis.call('HSET', KEYS[3], id, size .. ' ' .. caller)
count(caller, 0, size - before)
redis.call('PUBLISH', ARGV[9], ARGV[10] .. ' ' .. id)
return 1
"""
)
_READ = Script("""
local found = redis.call('HMGET', KEYS[1], 'record', 'runner', 'open')
if not found[1] then return false end
local lives = found[3] ~= '1' or redis.call('EXISTS', ARGV[1] .. found[2]) == 1
return {found[1], lives and 1 or 0}
""")
_FORGET = Script(_COMMON + "forget(id) redis.call('DEL', KEYS[1]) return 0")
# A message is the id of its task, its name and its content, with spaces between. Next to the inbox of a
# process is how many wait there for each task.
_POST = Script("""
local found = redis.call('HMGET', KEYS[1], 'runner', 'open')
if found[2] ~= '1' then return 0 end
local inbox, id, life = ARGV[1] .. found[1], ARGV[3]:match('^%S+'), ARGV[5]
local counts = inbox .. ':counts'
local waiting = tonumber(redis.call('HGET', counts, id) or '0')
if waiting >= tonumber(ARGV[4]) then return waiting end
redis.call('HINCRBY', counts, id, 1)
redis.call('RPUSH', inbox, ARGV[3])
redis.call('PEXPIRE', counts, life)
redis.call('PEXPIRE', inbox, life)
redis.call('PUBLISH', ARGV[2] .. found[1], '')
return waiting
""")
_DROP = Script("""
for _, message in ipairs(ARGV) do
  local id, removed = message:match('^%S+'), redis.call('LREM', KEYS[1], 0, message)
  if redis.call('HINCRBY', KEYS[2], id, -removed) <= 0 then redis.call('HDEL', KEYS[2], id) end
end
""")


class RedisTaskStore:
    """Tasks on a server that several processes share."""

    def __init__(self, redis: Redis, clock: Callable[[], float] = time.time) -> None:
        self._redis = redis
        self._clock = clock
        self._runner = secrets.token_hex(8)
        self._limits = Limits()
        self._hearer: TaskHearer
        self._watched: set[str] = set()
        self._beating: asyncio.Task[None] | None = None
        self._taking: set[asyncio.Task[None]] = set()
        self._unmade: set[str] = set()
        """Tasks that Redis may have, although nobody was told of them."""
        self._turn = asyncio.Lock()
        """Held while messages are taken."""
        self._heard: OrderedDict[bytes, None] = OrderedDict()
        """The names of messages that were heard."""
        self._leave: list[Callable[[], None]] = []

    async def open(self, limits: Limits, hearer: TaskHearer) -> None:
        """Say that this process lives, and listen."""
        self._limits, self._hearer = limits, hearer
        await self._redis.start()
        subscribe = self._redis.notices.subscribe
        self._leave = [
            subscribe(f"tasks:runner:{self._runner}", lambda _: self._look(), self._say_and_look),
            subscribe(_CHANGED, self._hear_change, self._miss_changes),
        ]
        self._say()
        self._beating = asyncio.create_task(self._beat())

    async def close(self, left: Sequence[TaskRecord] = ()) -> None:
        """Listen no longer; from now on this process is gone for all others."""
        for leave in self._leave:
            leave()
        if self._beating is not None:
            self._beating.cancel()
        await asyncio.gather(*(self.write(record) for record in left), return_exceptions=True)
        with suppress(StoreUnavailable):
            await self._redis.call("DEL", f"{_PREFIX}alive:{self._runner}", *self._inbox)
        await self._redis.close()

    async def create(self, record: TaskRecord) -> None:
        """Keep a new task, which this process runs."""
        life = round((record.expires - self._clock() + _SLACK_SECONDS) * 1000)
        given = (record.caller, self._limits.tasks_per_caller, self._limits.tasks, _encode(record))
        try:
            refused = await self._run(_CREATE, record.id, *given, self._runner, life, record.expires)
        except StoreUnavailable as problem:  # so that the call is answered as a call, where that can be
            if len(self._unmade) < _MOST_UNMADE:
                self._unmade.add(record.id)
            raise TooManyTasks(f"No task can be made right now: {problem}") from problem
        if refused:
            check_new_task(self._limits, *_kept(refused))

    async def read(self, task_id: str) -> TaskRecord | None:
        """Return a task; one whose process is gone has been interrupted."""
        with _explained():
            found = await self._redis.run(_READ, [f"{_PREFIX}{task_id}"], [f"{_PREFIX}alive:"])
            if found is None:
                return None
            record = msgspec.msgpack.decode(found[0], type=TaskRecord)
            if record.expires <= self._clock():
                return None
            if found[1] or self._redis.up_seconds < LIFE_SECONDS:
                return record
            record = record.interrupt(self._clock())
            await self.write(record)
            return record

    async def write(self, record: TaskRecord) -> bool:
        """Keep a task's new state, unless it has ended."""
        limits = (self._limits.task_bytes_per_caller, self._limits.task_bytes)
        state = (_encode(record), "0" if record.has_ended else "1")
        news = (f"bridgehead:{_CHANGED}", self._runner)
        answer = await self._run(
            _WRITE, record.id, record.caller, len(record.payload), *limits, *state, *news
        )
        if isinstance(answer, list):
            check_payload(self._limits, record.payload, *_kept(answer))
        return bool(answer == 1)

    async def forget(self, task_id: str) -> None:
        """Remove a task."""
        await self._run(_FORGET, task_id)

    async def post(self, task_id: str, message: bytes) -> None:
        """Leave a message for the process that runs a task."""
        body = b"%b %b %b" % (task_id.encode(), secrets.token_hex(8).encode(), message)
        places, life = (f"{_PREFIX}inbox:", f"{_PREFIX}runner:"), int(_INBOX_SECONDS * 1000)
        words = [*places, body, MOST_MESSAGES, life]
        with _explained():
            check_messages(await self._redis.run(_POST, [f"{_PREFIX}{task_id}"], words))

    def watch(self, task_id: str) -> None:
        """Look for changes of a task from now on."""
        self._watched.add(task_id)

    def unwatch(self, task_id: str) -> None:
        """Stop that."""
        self._watched.discard(task_id)

    def _run(self, script: Script, task_id: str, *arguments: Any) -> asyncio.Future[Any]:
        keys = [f"{_PREFIX}{task_id}", _EXPIRY, _SIZES, _KEPT]
        return self._redis.run(script, keys, [task_id, self._clock(), *arguments])

    # --- notices -------------------------------------------------------------------------------------------

    def _hear_change(self, message: bytes) -> None:
        runner, _, task_id = message.decode().partition(" ")
        if runner != self._runner and task_id in self._watched:
            self._hearer.notice_change(task_id)

    def _miss_changes(self) -> None:
        for task_id in tuple(self._watched):
            self._hearer.notice_change(task_id)

    def _say_and_look(self) -> None:
        self._say()
        self._look()

    def _look(self) -> None:
        task = asyncio.get_running_loop().create_task(self._take_messages())
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)

    async def _take_messages(self) -> None:
        async with self._turn:
            with suppress(StoreUnavailable, StoreError):  # they wait, and are looked for when Redis is back
                await self._forget_unmade()
                messages = await self._redis.call("LRANGE", self._inbox[0], 0, -1)
                for message in messages:
                    self._hear(message)
                if messages:
                    await self._redis.run(_DROP, self._inbox, messages)

    async def _forget_unmade(self) -> None:
        for task_id in tuple(self._unmade):
            await self.forget(task_id)
            self._unmade.discard(task_id)

    def _hear(self, message: bytes) -> None:
        task_id, name, content = message.split(b" ", 2)
        if name in self._heard:
            return
        self._heard[name] = None
        if len(self._heard) > _MOST_HEARD:
            self._heard.popitem(last=False)
        self._hearer.take_message(task_id.decode(), content)

    @property
    def _inbox(self) -> list[str]:
        inbox = f"{_PREFIX}inbox:{self._runner}"
        return [inbox, f"{inbox}:counts"]

    def _say(self) -> None:
        life = int(LIFE_SECONDS * 1000)
        self._redis.tell("SET", f"{_PREFIX}alive:{self._runner}", "1", "PX", life)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._say_and_look()  # a notice can be lost, its content is stored
            self._miss_changes()  # nobody else tells that the process of a watched task is gone


def _encode(record: TaskRecord) -> bytes:
    return msgspec.msgpack.encode(record)


def _kept(counts: list[int]) -> tuple[Kept, Kept]:
    return Kept(counts[0], counts[1]), Kept(counts[2], counts[3])


@contextmanager
def _explained() -> Iterator[None]:
    """Say to a client what is wrong where tasks of other processes cannot be reached."""
    try:
        yield
    except StoreUnavailable as problem:
        raise ProtocolError(OVERLOADED, f"The task cannot be reached right now: {problem}") from problem
