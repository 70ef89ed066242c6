"""Dispatch: the core. A message comes in, messages come out; no I/O.

The dispatcher runs a request's method and puts the result into the envelope of the client's revision.
Transports call `receive` (or, where they need to look in between, `request.read` and `serve`) and move the
bytes that come back.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import UNSET

from . import changes, jsonrpc
from .bridge import Bridge
from .calls.context import Context, questions_in
from .calls.multi_round import Rounds
from .calls.params import META_PREFIX, CancelledParams
from .changes import Listener
from .connection import Client, Connection, Outlet
from .errors import INTERNAL_ERROR, METHOD_NOT_FOUND, Dialect, Failure, ProtocolError, ToolError
from .features.tools import InvalidArguments, encoded, error_result
from .lazy_imports import asyncio, inspect, logging
from .lifespan import Lifespan, Lifespans
from .limits import Limits
from .methods.handshake import fitted_info
from .methods.request import Request, client_of, read
from .results import Body
from .revisions import V2026_07_28, Revision

Reply = bytes | Coroutine[Any, Any, bytes | None] | None
"""An answer, work that will give one (or none, if it is cancelled), or nothing to say."""


_LONGEST_LOGGED = 300
"""Characters of a refusal's words, in which what the client sent may be repeated."""


class Dispatcher:
    """Serves one bridge to any number of connections."""

    def __init__(
        self,
        bridge: Bridge[Any],
        *,
        limits: Limits | None = None,
        state_key: bytes | None = None,
        lifespans: Lifespans | None = None,
    ) -> None:
        self.bridge = bridge
        self.limits = limits or Limits()
        self.lifespans = Lifespans() if lifespans is None else lifespans
        """What its bridges hold open; shared with other dispatchers that serve the same bridges."""
        self.streams: set[Listener] = set()
        """The open `subscriptions/listen` streams."""
        self.rounds = Rounds(state_key, self.limits.request_state_seconds)
        self._memory: dict[Any, Body] = {}
        self._memory_generation = 0
        self._server_meta = {META_PREFIX + "serverInfo": fitted_info(self, V2026_07_28)}
        self._complete = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode(self._server_meta)

    # --- the bridge's life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to hold open what the bridge needs, without waiting for it."""
        for home in self.bridge.homes:
            self.lifespans[home].start()

    async def stop(self) -> None:
        """Let go of it, within the limit."""
        within = self.limits.shutdown_seconds
        await asyncio.gather(*(self.lifespans[home].stop(within) for home in self.bridge.homes))

    def at_home(self, context: Context[Any], home: Bridge[Any]) -> Lifespan:
        """Give a request the state and the dialect of the bridge whose part serves it."""
        lifespan = self.lifespans[home]
        if home is not self.bridge:
            context.at_home(lifespan, home.dialect)
        return lifespan

    # --- in ------------------------------------------------------------------------------------------------

    def receive(self, data: bytes | memoryview, connection: Connection, outlet: Outlet) -> Reply:
        """Take one line or body and return what is to be sent back. Never raises."""
        return self.take_any(jsonrpc.decode(data), connection, outlet)

    def take_any(
        self,
        message: jsonrpc.Message | jsonrpc.Batch | jsonrpc.Malformed,
        connection: Connection,
        outlet: Outlet,
    ) -> Reply:
        """Take whatever was decoded."""
        if isinstance(message, jsonrpc.Message):
            return self.take(message, connection, outlet)
        if isinstance(message, jsonrpc.Malformed):
            return jsonrpc.error(message.id, message.error)
        from .batches import take_batch  # which only one revision has

        return take_batch(self, message, connection, outlet)

    def take(self, message: jsonrpc.Message, connection: Connection, outlet: Outlet) -> Reply:
        """Take one message."""
        if message.method is UNSET:
            connection.answered(message)
            return None
        if message.id is UNSET:
            self.notified(message, connection)
            return None
        try:
            request = read(message.id, message.method, message.params)
            work = self.serve(request, connection, outlet)
        except ProtocolError as failure:
            return jsonrpc.error(message.id, failure)
        return work if isinstance(work, bytes) else self._answering(message.id, work)

    async def _answering(
        self, request_id: jsonrpc.RequestId, work: Coroutine[Any, Any, bytes | None]
    ) -> bytes | None:
        try:
            return await work
        except ProtocolError as failure:
            return jsonrpc.error(request_id, failure)

    def notified(self, message: jsonrpc.Message, connection: Connection) -> None:
        """Take a notification; one that is unknown or broken is ignored, as the protocol asks."""
        if message.method == "notifications/cancelled" and message.params is not UNSET:
            try:
                cancelled = msgspec.json.decode(message.params, type=CancelledParams)
            except jsonrpc.UNDECODABLE:
                return
            connection.cancel(cancelled.request_id)

    # --- requests ------------------------------------------------------------------------------------------

    def serve(
        self,
        request: Request,
        connection: Connection,
        outlet: Outlet,
        expected: Revision | None = None,
    ) -> bytes | Coroutine[Any, Any, bytes | None]:
        """Run a request. Returns its answer or the work towards it; raises `ProtocolError`.

        `expected` is the revision that the transport was told beside the message, where it was.
        """
        client = client_of(request, connection, expected)
        method = request.method
        if (
            method is None
            or not (method.stateless if client.revision.stateless else method.handshake)
            or not method.offered(self)
        ):
            raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {request.name}")
        if request.problem is not None:
            raise request.problem
        if not self.bridge.logging:
            client.log_level = None  # what is not offered is not sent
        context: Context[Any] = Context(
            request.id,
            request.name,
            client,
            connection,
            outlet,
            lifespan=self.lifespans[self.bridge],
            dialect=self.bridge.dialect,
            meta=request.params.meta,
        )
        connection.enter(context)
        try:
            outcome = method.run(self, context, request.params)
            if not isinstance(outcome, tuple):
                return self._finishing(context, request, outcome)
            answer = self._enveloped(context, outcome)
        except BaseException as error:  # noqa: BLE001  (a client always gets an answer, whatever a tool raises)
            connection.leave(context)
            return self._unwound(context, request, error)
        connection.leave(context)
        return answer

    async def _finishing(
        self, context: Context[Any], request: Request, work: Coroutine[Any, Any, Body]
    ) -> bytes | None:
        context.task = asyncio.current_task()
        answer: bytes | None = None
        try:
            if context.cancelled:
                _close_unstarted(work)
            else:
                answer = self._enveloped(context, await work)
        except BaseException as error:
            if not context.cancelled:
                if context.is_interrupted(error):
                    raise
                answer = self._unwound(context, request, error)
        finally:
            context.connection.leave(context)
        return None if context.cancelled else answer

    # --- clients -------------------------------------------------------------------------------------------

    def adopt(self, connection: Connection, client: Client) -> None:
        """Make a client of the handshake era known on its connection, and let it hear of changes."""
        connection.client = client
        if connection.listener is None:
            names = {"tools": changes.TOOLS, "prompts": changes.PROMPTS, "resources": changes.RESOURCES}
            connection.listener = Listener({names[what] for what in self.bridge.changing}, set())
            self.bridge.changed.listen(connection.listener)

    @staticmethod
    async def announce(listener: Listener, outlet: Outlet) -> None:
        """Tell a client of the handshake era what changes, for as long as its connection lasts."""
        while heard := await listener.heard():
            for method, uri in heard:
                await outlet.send(jsonrpc.notification(method, None if uri is None else {"uri": uri}))

    @contextmanager
    def streaming(self, connection: Connection, listener: Listener) -> Iterator[None]:
        """Count an open listen stream, and let its listener hear of changes while it is open."""
        self.streams.add(listener)
        self.bridge.changed.listen(listener)
        try:
            with connection.parking():
                yield
        finally:
            self.bridge.changed.leave(listener)
            self.streams.discard(listener)

    def disconnect(self, connection: Connection) -> None:
        """Stop everything that was done for a client that is gone."""
        if connection.listener is not None:
            self.bridge.changed.leave(connection.listener)
            connection.listener.close()
        connection.abandon_questions()
        connection.cancel_all()

    def end_streams(self) -> None:
        """End every listen stream in good order, because the server is going."""
        for listener in tuple(self.streams):
            listener.close()

    # --- out -----------------------------------------------------------------------------------------------

    def remembered(self, key: Any, make: Callable[[], Body]) -> Body:
        """Return what was made before under this key, unless the bridge's lists have changed since."""
        generation = self.bridge.changed.generation
        if self._memory_generation != generation:
            self._memory.clear()
            self._memory_generation = generation
        body = self._memory.get(key)
        if body is None:
            body = self._memory[key] = make()
        return body

    def _enveloped(self, context: Context[Any], body: Body) -> bytes:
        encoded_body, meta = body
        if context.revision.stateless:
            head = self._complete
            if meta:
                head = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode({**self._server_meta, **meta})
        elif meta:
            head = b'{"_meta":%b' % jsonrpc.encode(meta)
        else:
            return jsonrpc.result(context.request_id, encoded_body)
        tail = b"}" if encoded_body == b"{}" else b"," + encoded_body[1:]
        return jsonrpc.result(context.request_id, head + tail)

    def _asking(self, context: Context[Any], questions: dict[str, Any]) -> bytes:
        body = {"resultType": "input_required", "_meta": self._server_meta, **questions}
        return jsonrpc.result(context.request_id, jsonrpc.encode(body))

    def _unwound(self, context: Context[Any], request: Request, error: BaseException) -> bytes:
        """Answer for a handler that did not return: it asks the client something, or it failed."""
        try:
            if questions := questions_in(error):
                return self._asking(context, self.rounds.pause(context, request.params, questions))
            return self._failed(
                context, _worded(context.dialect.for_revision(context.revision), error), error
            )
        except ProtocolError:
            raise
        except Exception as another:  # noqa: BLE001  (what was to be said cannot be said)
            return self._failed(context, None, another)

    def _failed(self, context: Context[Any], failure: Failure | None, cause: BaseException) -> bytes:
        """Word a failure as the bridge's dialect has it; a bug (no failure) leaves only its reference."""
        if failure is None:
            failure = context.dialect.bug(_logged(context, cause))
        elif isinstance(failure, ProtocolError):
            said = failure.message[:_LONGEST_LOGGED]
            logging.getLogger("bridgehead.mcp").info("%s refused: %s", context.method, said)
        if isinstance(failure, ToolError) and context.method == "tools/call":
            return self._enveloped(context, encoded(error_result(failure), context.revision))
        if isinstance(failure, ToolError):
            failure = ProtocolError(INTERNAL_ERROR, failure.message)
        raise failure from cause


def _worded(dialect: Dialect, error: BaseException) -> Failure | None:
    """Put what ended a call into the words of the bridge's dialect; None is a bug."""
    if isinstance(error, InvalidArguments):
        return dialect.invalid_arguments(error.tool, str(error))
    return dialect.translate(error) if isinstance(error, Exception) else None


def _close_unstarted(work: Coroutine[Any, Any, Any]) -> None:
    """Close work that has not begun, and the work that it was to wait for."""
    awaited = [value for value in inspect.getcoroutinelocals(work).values() if inspect.iscoroutine(value)]
    work.close()
    for inner in awaited:
        _close_unstarted(inner)


def _logged(context: Context[Any], error: BaseException) -> str:
    import secrets  # only a bug needs it

    reference = secrets.token_hex(4)
    log = logging.getLogger("bridgehead.mcp")
    log.error("bug %s in %s (request %r)", reference, context.method, context.request_id, exc_info=error)
    return reference
