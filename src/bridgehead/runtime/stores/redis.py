"""Redis: the one connection of a process to Redis or Valkey, and what happens when it fails.

Commands that wait in one turn of the loop go out as one pipeline; what comes meanwhile is the next one. The
time of each is bounded. A command that fails takes the connection down: until a write succeeds again, tried
in the background, every command fails at once, so that a lost Redis costs one call one wait. Writing is what
is tried, because a server that is full, or a replica that cannot write, is of no use to anybody here.

After a broken connection a pipeline is sent once more: a script that must not count twice carries an id.
Time is Redis's own (`TIME` in a script), so the clocks of replicas need not agree. redis-py does the
protocol, TLS, passwords and Sentinel. What is stored, and what it means, is the business of those who do.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import NoScriptError, ResponseError

from .. import logs
from ..settings import hide_credentials
from ..timing import Backoff
from .connecting import (
    CONNECT_SECONDS,
    close_pool,
    describe,
    end_tasks,
    is_unusable,
    open_pool,
    reason_of,
    run_within,
)
from .pubsub import Notices
from .scripts import Script, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

    from ..metrics import Metrics

PREFIX = "bridgehead:"
"""What every key and channel of ours begins with."""
IDLE_SECONDS = 1.0
"""How long nothing is asked before a ping finds out whether the connection still lives."""
AGAIN = Backoff(base=0.05, limit=2.0)
MOST_WAITING = 10_000
"""Commands that may wait for a pipeline."""
MOST_AT_ONCE = 1000
"""Commands of one pipeline."""
_PROBE = ("SET", f"{PREFIX}probe", "1", "PX", "10000")

log = logs.logger("stores.redis")


class _Command(Struct, eq=False):
    words: Sequence[Any]
    answer: asyncio.Future[Any]
    script: Script | None = None


class Redis:
    """The connection. Made without opening anything; `start` opens it and `close` ends it."""

    def __init__(self, url: str, seconds: float = 0.05, draw: Callable[[], float] = random.random) -> None:
        self.url = url
        self.problem = "It has not been connected to yet."
        """Why commands fail right now; nothing while they do not."""
        self._up_since = 0.0
        self.failures: Counter[str] = Counter()
        """How often the connection was lost, by reason."""
        self.commands = 0
        self.pipelines = 0
        self._known: set[str] = set()
        """Scripts that the server has seen over this connection, by their digest."""
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
        """Connect, and wait a moment for it; a failed connection is retried in the background."""
        self._users += 1
        if self._users > 1:
            return
        loop = asyncio.get_running_loop()
        first = loop.create_future()
        self._task = loop.create_task(self._run(first))
        self.notices.start()
        await asyncio.wait([first], timeout=CONNECT_SECONDS)

    async def close(self) -> None:
        """Let go of the connection, where nobody else has it open."""
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

    @property
    def up_seconds(self) -> float:
        """How long it has been there without a gap."""
        return monotonic() - self._up_since if self.is_up else 0.0

    # --- commands ------------------------------------------------------------------------------------------

    def call(self, *words: Any) -> asyncio.Future[Any]:
        """Send a command with the next pipeline; what comes raises StoreUnavailable or StoreError."""
        return self._enqueue(words, None)

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Any] = ()) -> asyncio.Future[Any]:
        """Run a script with the next pipeline."""
        return self._enqueue(("EVALSHA", script.digest, len(keys), *keys, *arguments), script)

    def tell(self, *words: Any) -> None:
        """Send a command whose answer nobody waits for, and whose failure nobody has to know."""
        self._enqueue(words, None).add_done_callback(_ignore)

    def tell_script(self, script: Script, keys: Sequence[str], arguments: Sequence[Any]) -> None:
        """Run a script whose answer nobody waits for, and whose failure nobody has to know."""
        self.run(script, keys, arguments).add_done_callback(_ignore)

    def publish(self, channel: str, message: bytes, failed: Callable[[], None] | None = None) -> None:
        """Tell everybody who listens to a channel, ourselves too; `failed` hears where that cannot be."""

        def look(answer: asyncio.Future[Any]) -> None:
            if not answer.cancelled() and answer.exception() is not None and failed is not None:
                failed()

        self._enqueue(("PUBLISH", PREFIX + channel, message), None).add_done_callback(look)

    def _enqueue(self, words: Sequence[Any], script: Script | None) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        problem = self.problem
        if not problem and len(self._waiting) >= MOST_WAITING:
            problem = f"{MOST_WAITING} commands wait for it already."
        if problem:
            answer.set_exception(StoreUnavailable(f"Redis cannot be used: {problem}"))
            answer.exception()  # a caller that no longer waits needs no warning about it
            return answer
        self._waiting.append(_Command(words, answer, script))
        if self._woken is not None:
            _settle(self._woken)
        return answer

    # --- the task that owns the connection -----------------------------------------------------------------

    async def _run(self, first: asyncio.Future[None]) -> None:
        attempt = 0
        while True:
            try:
                await run_within(CONNECT_SECONDS, self._reconnect())
                self._say_up()
                attempt = 0
                _settle(first)
                await self._serve()
            except Exception as failure:  # noqa: BLE001 - whatever it is, the connection is of no more use
                self._say_down(failure)
            _settle(first)
            await self._disconnect()
            await asyncio.sleep(AGAIN.delay(attempt, self._draw))
            attempt += 1

    async def _serve(self) -> None:
        """Send what waits, as long as the connection lasts."""
        while True:
            await self._wait_for_work()
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            try:
                await run_within(self._seconds, self._exchange(batch))
            except BaseException as failure:
                _fail(batch, f"Redis cannot be used: {describe(failure, self._seconds)}")
                raise

    async def _wait_for_work(self) -> None:
        while not self._waiting:
            self._woken = asyncio.get_running_loop().create_future()
            nudge = asyncio.get_running_loop().call_later(IDLE_SECONDS, _settle, self._woken)
            try:
                await self._woken
            finally:
                nudge.cancel()
                self._woken = None
            if not self._waiting:
                await run_within(CONNECT_SECONDS, self._send([("PING",)]))

    async def _exchange(self, batch: list[_Command]) -> None:
        """Send a pipeline and hand out the answers; once more where the connection had been closed."""
        try:
            answers = await self._send([self._spell_out(command) for command in batch])
        except (OSError, Disconnected):
            await self._reconnect()
            answers = await self._send([self._spell_out(command) for command in batch])
        self.pipelines += 1
        self.commands += len(batch)
        faults = [self._hand_out(command, answer) for command, answer in zip(batch, answers, strict=True)]
        for fault in faults:
            if fault is not None:
                raise fault

    def _spell_out(self, command: _Command) -> Sequence[Any]:
        """Return the words of a command, with a script's text where this server may not know it yet."""
        script = command.script
        if script is None or script.digest in self._known:
            return command.words
        self._known.add(script.digest)
        return ("EVAL", script.text, *command.words[2:])

    def _hand_out(self, command: _Command, answer: Any) -> Exception | None:
        """Give a command its answer; return what takes the connection down."""
        if command.answer.done():  # whoever asked has gone
            return None
        if not isinstance(answer, Exception):
            command.answer.set_result(answer)
            return None
        if command.script is not None and isinstance(answer, NoScriptError):
            words = ("EVAL", command.script.text, *command.words[2:])
            self._waiting.insert(0, _Command(words, command.answer))
            return None
        if is_unusable(answer):
            _fail([command], f"Redis cannot be used: {describe(answer, self._seconds)}")
            return answer
        command.answer.set_exception(StoreError(f"Redis refused {command.words[0]}: {answer}"))
        return None

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
        [answer] = await self._send([_PROBE])
        if isinstance(answer, Exception):
            raise answer

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    def _say_up(self) -> None:
        if self.problem:
            self._up_since = monotonic()
            log.info("redis is up", url=hide_credentials(self.url))
        self.problem = ""

    def _say_down(self, failure: Exception) -> None:
        problem = describe(failure, self._seconds)
        if problem != self.problem:
            log.error("redis cannot be used", url=hide_credentials(self.url), problem=problem)
        self.failures[reason_of(failure)] += 1
        self.problem = problem
        self._fail_waiting(problem)

    def _fail_waiting(self, problem: str) -> None:
        waiting, self._waiting = self._waiting, []
        _fail(waiting, f"Redis cannot be used: {problem}")

    def declare_metrics(self, metrics: Metrics) -> None:
        """Show how it is."""
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
"""The connections of this process that are in use or about to be, by address."""


def shared(url: str, seconds: float) -> Redis:
    """Return the connection of this process to an address: host and bridges have the same."""
    if url not in _shared:
        _shared[url] = Redis(url, seconds)
    return _shared[url]


def _fail(commands: Sequence[_Command], problem: str) -> None:
    for command in commands:
        if not command.answer.done():
            command.answer.set_exception(StoreUnavailable(problem))
            command.answer.exception()  # a caller that no longer waits needs no warning about it


def _ignore(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
