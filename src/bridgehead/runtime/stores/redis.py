"""Redis: the one connection of a process to Redis or Valkey, and how it fails and recovers.

Commands of one turn of the loop go out as one pipeline; those that come meanwhile form the next. Each
pipeline has a time limit. A failure takes the connection down: until a write succeeds again, retried in the
background, every command fails at once, so that a lost Redis delays a single call. The retry is a write,
because a full server or a read-only replica is of no use here.

After a broken connection a pipeline is sent once more: a script that must not count twice carries an id. Time
is Redis's own (`TIME` in a script), so the clocks of replicas need not agree. redis-py does the protocol,
TLS, passwords and Sentinel. The meaning of keys is defined where they are used.

A Sentinel address is `redis+sentinel://one:26379,two:26379/NAME/DATABASE`. Its password is that of the
server; Sentinels are asked without one.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from redis.asyncio import BlockingConnectionPool, Sentinel
from redis.asyncio import Redis as Client
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MasterDownError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)
from redis.exceptions import ConnectionError as Disconnected

from .. import logs
from ..metrics import Metrics
from ..settings import hide_credentials
from ..timing import Backoff
from .deadlines import end_tasks, run_within
from .notices import CONNECT_SECONDS, Notices
from .scripts import Script, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection, ConnectionPool


PREFIX = "bridgehead:"
"""Prefix of all keys and channels."""
IDLE_SECONDS = 1.0
"""How long nothing is sent before a ping checks the connection."""
RECONNECT_BACKOFF = Backoff(base=0.05, limit=2.0)
MAX_WAITING = 10_000
"""Commands that may wait for a pipeline."""
MAX_PIPELINE = 1000
"""Commands of one pipeline."""
_PROBE = ("SET", f"{PREFIX}probe", "1", "PX", "10000")
_SENTINEL_PORT = 26379

log = logs.logger("stores.redis")


# --- failures -----------------------------------------------------------------------------------------------

UNUSABLE = {
    "READONLY": "read_only",
    "OOM": "full",
    "MISCONF": "cannot_persist",
    "LOADING": "loading",
    "MASTERDOWN": "master_down",
    "NOREPLICAS": "no_replicas",
    "NOAUTH": "password",
    "WRONGPASS": "password",
    "NOPERM": "permission",
    "BUSY": "busy",
}
"""Errors that every other command would get too: the word that Redis sends, and the label in metrics."""
_KINDS: dict[type[Exception], str] = {
    TimeoutError: "slow",
    AuthenticationError: "password",
    BusyLoadingError: "loading",
    ReadOnlyError: "read_only",
    OutOfMemoryError: "full",
    MasterDownError: "master_down",
    NoPermissionError: "permission",
}
"""Errors for which redis-py has a class; it strips the word from their text."""
_WORDS = {
    "read_only": "It is read-only, as a replica is while another server takes over.",
    "full": "It is full: its maxmemory is used up.",
    "cannot_persist": "It cannot write to its disk, and refuses changes.",
    "loading": "It is loading its data after a start.",
    "password": "It rejects the password, or needs one.",
    "permission": "Its user lacks a permission that is needed.",
}


def reason_of(failure: BaseException) -> str:
    """Return the `reason` of a failure in the metrics."""
    for kind, reason in _KINDS.items():
        if isinstance(failure, kind):
            return reason
    if isinstance(failure, ResponseError):
        text = str(failure)
        return next((reason for word, reason in UNUSABLE.items() if word in text), "refused")
    return "gone"


def is_unusable(failure: Exception) -> bool:
    """Whether the server would refuse every other command as well."""
    return reason_of(failure) in UNUSABLE.values()


def describe(failure: BaseException, seconds: float) -> str:
    """Explain a failure to the operator."""
    reason = reason_of(failure)
    if reason == "slow":
        return f"It did not answer within {seconds * 1000:g} ms."
    return _WORDS.get(reason) or f"It cannot be reached, or closed the connection ({failure})."


# --- addresses ----------------------------------------------------------------------------------------------


def open_pool(url: str) -> ConnectionPool:
    """Make the connection pool; opens nothing yet."""
    scheme, _, rest = url.partition("://")
    # No retries by redis-py: `_exchange` decides what is sent again.
    options: dict[str, Any] = {"retry": Retry(NoBackoff(), 0), "protocol": 2}
    if not scheme.endswith("+sentinel"):
        if scheme != "unix":
            options["socket_keepalive"] = True
        known = {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme)
        # No connect timeout in redis-py: it would count the time of a busy loop (see `deadlines`).
        return BlockingConnectionPool.from_url(
            f"{known}://{rest}",
            max_connections=8,
            timeout=CONNECT_SECONDS,
            socket_connect_timeout=None,
            **options,
        )
    parts = urlsplit(url)
    name, _, database = parts.path.strip("/").partition("/")
    addresses = []
    for text in parts.netloc.rpartition("@")[2].split(","):
        host, colon, port = text.rpartition(":")
        addresses.append((host, int(port)) if colon else (text, _SENTINEL_PORT))
    # With timeouts: redis-py asks one Sentinel after the other, and a silent one must not block the rest.
    sentinel = Sentinel(addresses, socket_timeout=CONNECT_SECONDS, socket_connect_timeout=CONNECT_SECONDS)
    client: Client = sentinel.master_for(
        name,
        db=int(database or 0),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        ssl=parts.scheme.startswith("rediss"),
        socket_connect_timeout=None,
        **options,
    )
    return client.connection_pool


async def close_pool(pool: ConnectionPool) -> None:
    """Close the connections of a pool, and those to Sentinels."""
    await pool.disconnect()
    if isinstance(pool, SentinelConnectionPool):
        for sentinel in pool.sentinel_manager.sentinels:
            await sentinel.aclose()


# --- the connection -----------------------------------------------------------------------------------------


class _Command(Struct, eq=False):
    words: Sequence[Any]
    answer: asyncio.Future[Any]
    script: Script | None = None


class Redis:
    """The connection. Made without opening anything; `start` opens it and `close` ends it."""

    def __init__(self, url: str, seconds: float, draw: Callable[[], float] = random.random) -> None:
        self.url = url
        self.problem = "It has not been connected to yet."
        """Why commands fail right now; empty while they do not."""
        self.failures: Counter[str] = Counter()
        """How often the connection was lost, by reason."""
        self.commands = 0
        self.pipelines = 0
        self._known: set[str] = set()
        """Digests of scripts that were sent over this connection."""
        self._pool = open_pool(url)
        self.notices = Notices(self._pool, PREFIX, draw)
        self._seconds = seconds
        self._draw = draw
        self._waiting: list[_Command] = []
        self._woken: asyncio.Future[None] | None = None
        self._connection: AbstractConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._users = 0

    # --- its life ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, and wait for the first attempt; a failed connection is retried in the background."""
        self._users += 1
        if self._users > 1:
            return
        loop = asyncio.get_running_loop()
        first = loop.create_future()
        self._task = loop.create_task(self._run(first))
        self.notices.start()
        # Bounded: `run_within` limits the attempt. The task is waited for too, because `close` may cancel it
        # before `first` is settled.
        await asyncio.wait([first, self._task], return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Undo `start`; the last user closes the connection."""
        self._users -= 1
        if self._users > 0 or self._task is None:
            return
        if _shared.get(self.url) is self:
            del _shared[self.url]
        await end_tasks([self._task])
        await self.notices.stop()
        self.problem = "The server is ending."
        self._fail_waiting(self.problem)
        await self._disconnect()
        await close_pool(self._pool)

    @property
    def is_up(self) -> bool:
        """Whether commands are sent at all."""
        return not self.problem

    # --- commands ------------------------------------------------------------------------------------------

    def call(self, *words: Any) -> asyncio.Future[Any]:
        """Send a command with the next pipeline; the future raises StoreUnavailable or StoreError."""
        return self._enqueue(words, None)

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Any] = ()) -> asyncio.Future[Any]:
        """Run a script with the next pipeline."""
        return self._enqueue(("EVALSHA", script.digest, len(keys), *keys, *arguments), script)

    def tell(self, *words: Any) -> None:
        """Send a command and ignore its answer or failure."""
        self._enqueue(words, None).add_done_callback(_ignore)

    def tell_script(self, script: Script, keys: Sequence[str], arguments: Sequence[Any]) -> None:
        """Run a script and ignore its answer or failure."""
        self.run(script, keys, arguments).add_done_callback(_ignore)

    def publish(self, channel: str, message: bytes, failed: Callable[[], None] | None = None) -> None:
        """Publish a message to all replicas, this one too; `failed` is called if that is impossible."""

        def report_failure(answer: asyncio.Future[Any]) -> None:
            if not answer.cancelled() and answer.exception() is not None and failed is not None:
                failed()

        self._enqueue(("PUBLISH", PREFIX + channel, message), None).add_done_callback(report_failure)

    def _enqueue(self, words: Sequence[Any], script: Script | None) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        problem = self.problem
        if not problem and len(self._waiting) >= MAX_WAITING:
            problem = f"{MAX_WAITING} commands wait for it already."
        if problem:
            answer.set_exception(StoreUnavailable(f"Redis cannot be used: {problem}"))
            # Marks the exception as retrieved: asyncio would warn if the caller no longer waits for it.
            answer.exception()
            return answer
        self._waiting.append(_Command(words, answer, script))
        if self._woken is not None:
            _settle(self._woken)
        return answer

    # --- the task that owns the connection -----------------------------------------------------------------

    async def _run(self, first: asyncio.Future[None]) -> None:
        """Connect, serve, reconnect, for ever. `first` is settled after the first attempt to connect."""
        attempt = 0
        while True:
            try:
                await run_within(CONNECT_SECONDS, self._reconnect())
                if self.problem:
                    log.info("redis is up", url=hide_credentials(self.url))
                self.problem = ""
                attempt = 0
                _settle(first)
                while True:
                    await self._wait_for_work()
                    batch, self._waiting = self._waiting[:MAX_PIPELINE], self._waiting[MAX_PIPELINE:]
                    try:
                        await run_within(self._seconds, self._exchange(batch))
                    except BaseException as failure:
                        _fail(batch, f"Redis cannot be used: {describe(failure, self._seconds)}")
                        raise
            except Exception as failure:  # noqa: BLE001 - whatever it is, the connection is of no more use
                problem = describe(failure, self._seconds)
                if problem != self.problem:
                    log.error("redis cannot be used", url=hide_credentials(self.url), problem=problem)  # noqa: TRY400
                self.failures[reason_of(failure)] += 1
                self.problem = problem
                self._fail_waiting(problem)
            _settle(first)
            await self._disconnect()
            await asyncio.sleep(RECONNECT_BACKOFF.delay(attempt, self._draw))
            attempt += 1

    async def _wait_for_work(self) -> None:
        """Wait until a command is enqueued; ping now and then, so that a dead connection is noticed."""
        loop = asyncio.get_running_loop()
        while not self._waiting:
            self._woken = loop.create_future()
            ping_timer = loop.call_later(IDLE_SECONDS, _settle, self._woken)
            try:
                await self._woken
            finally:
                ping_timer.cancel()
                self._woken = None
            if not self._waiting:
                await run_within(CONNECT_SECONDS, self._send([("PING",)]))

    async def _exchange(self, batch: list[_Command]) -> None:
        """Send a pipeline and distribute the answers; retry once if the connection was closed."""
        try:
            answers = await self._send([self._words_of(command) for command in batch])
        except (OSError, Disconnected):
            await self._reconnect()
            answers = await self._send([self._words_of(command) for command in batch])
        self.pipelines += 1
        self.commands += len(batch)
        unusable: Exception | None = None
        for command, answer in zip(batch, answers, strict=True):
            if command.answer.done():  # its caller was cancelled
                continue
            if not isinstance(answer, Exception):
                command.answer.set_result(answer)
            elif command.script is not None and isinstance(answer, NoScriptError):
                # SCRIPT FLUSH, or a failover to a server that never saw the script: send its text.
                words = ("EVAL", command.script.text, *command.words[2:])
                self._waiting.insert(0, _Command(words, command.answer))
            elif is_unusable(answer):
                _fail([command], f"Redis cannot be used: {describe(answer, self._seconds)}")
                unusable = unusable or answer
            else:
                command.answer.set_exception(StoreError(f"Redis refused {command.words[0]}: {answer}"))
        if unusable is not None:
            # Takes the connection down, but not before every other command has its answer.
            raise unusable

    def _words_of(self, command: _Command) -> Sequence[Any]:
        """Return the words of a command, with the script's text the first time on this connection."""
        script = command.script
        if script is None or script.digest in self._known:
            return command.words
        self._known.add(script.digest)
        return ("EVAL", script.text, *command.words[2:])

    async def _send(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        connection = self._connection
        if connection is None:
            raise Disconnected("not connected")
        await connection.send_packed_command(connection.pack_commands(commands), check_health=False)
        answers = []
        for _ in commands:
            try:
                answers.append(await connection.read_response())
            except ResponseError as refused:
                answers.append(refused)
        return answers

    # --- connecting ----------------------------------------------------------------------------------------

    async def _reconnect(self) -> None:
        await self._disconnect()
        self._known.clear()
        self._connection = self._pool.make_connection()
        await self._connection.connect()
        # A write: a read-only replica or a full server accepts connections and answers PING.
        [answer] = await self._send([_PROBE])
        if isinstance(answer, Exception):
            raise answer

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    def _fail_waiting(self, problem: str) -> None:
        waiting, self._waiting = self._waiting, []
        _fail(waiting, f"Redis cannot be used: {problem}")

    def declare_metrics(self, metrics: Metrics) -> None:
        """Declare the metrics of the connection."""
        metrics.gauge("bridgehead_redis_up", "Whether Redis can be used.", lambda: {(): float(self.is_up)})
        metrics.total(
            "bridgehead_redis_failures_total",
            "How often Redis was lost, by reason.",
            lambda: {(reason,): float(count) for reason, count in self.failures.items()},
            "reason",
        )
        metrics.total(
            "bridgehead_redis_commands_total", "Commands sent to Redis.", lambda: {(): float(self.commands)}
        )
        metrics.total(
            "bridgehead_redis_pipelines_total",
            "Round trips to Redis.",
            lambda: {(): float(self.pipelines)},
        )


_shared: dict[str, Redis] = {}
"""The connections of this process by address."""


def shared(url: str, seconds: float) -> Redis:
    """Return the connection to an address that the host and its bridges share."""
    if url not in _shared:
        _shared[url] = Redis(url, seconds)
    return _shared[url]


def _fail(commands: Sequence[_Command], problem: str) -> None:
    for command in commands:
        if not command.answer.done():
            command.answer.set_exception(StoreUnavailable(problem))
            command.answer.exception()  # marks it as retrieved, as in `_enqueue`


def _ignore(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
