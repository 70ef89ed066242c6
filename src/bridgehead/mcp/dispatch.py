"""Dispatch: the core. A message comes in, messages come out; no I/O.

The dispatcher runs a request's method and puts the result into the envelope of the client's revision.
Transports call `receive` (or, where they need to look in between, `methods.request.read` and `serve`) and
move the bytes that come back.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from . import jsonrpc
from .bridge import Bridge
from .calls.context import BecameTask, Context, find_input_requests
from .calls.multi_round import Keys
from .calls.params import META_PREFIX, CancelledParams
from .connection import Client, Connection, Outlet, Reply
from .errors import METHOD_NOT_FOUND, ProtocolError, quote
from .features.handlers import close_unstarted
from .lazy_imports import asyncio
from .lifespan import Lifespans
from .limits import Limits
from .methods.request import Request, client_of, read
from .methods.table import Method
from .revisions import V2026_07_28, Revision
from .server import Body, Server

if TYPE_CHECKING:
    from .tasks.manager import Tasks

OnError = Callable[[str, int], None]
"""Hears of each error of the protocol that a request is answered with: its method and the code."""


class Dispatcher(Server):
    """Takes messages for one bridge, from any number of connections."""

    def __init__(
        self,
        bridge: Bridge[Any],
        *,
        limits: Limits | None = None,
        state_key: Keys | None = None,
        lifespans: Lifespans | None = None,
        on_error: OnError | None = None,
        tasks: Tasks | None = None,
        scope: str | None = None,
    ) -> None:
        super().__init__(
            bridge, limits=limits, state_key=state_key, lifespans=lifespans, tasks=tasks, scope=scope
        )
        self._on_error = on_error
        # Every result of the stateless era begins in the same way, so that is encoded once.
        self._server_meta = {META_PREFIX + "serverInfo": bridge.info.fit(V2026_07_28)}
        self._complete = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode(self._server_meta)

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
            connection.take_answer(message)
            return None
        if message.id is UNSET:
            self.take_notification(message, connection)
            return None
        try:
            request = read(message.id, message.method, message)
            work = self.serve(request, connection, outlet)
        except ProtocolError as failure:
            return jsonrpc.error(message.id, failure)
        return work if isinstance(work, bytes) else self._answer_later(message.id, work)

    async def _answer_later(
        self, request_id: jsonrpc.RequestId, work: Coroutine[Any, Any, bytes | None]
    ) -> bytes | None:
        try:
            return await work
        except ProtocolError as failure:
            return jsonrpc.error(request_id, failure)

    def take_notification(self, message: jsonrpc.Message, connection: Connection) -> None:
        """Take a notification; one that is unknown or broken is ignored, as the protocol asks."""
        if message.method == "notifications/cancelled" and message.params is not UNSET:
            try:
                cancelled = msgspec.json.decode(message.params, type=CancelledParams)
            except jsonrpc.UNDECODABLE:
                return
            connection.cancel(cancelled.request_id)

    # --- requests ------------------------------------------------------------------------------------------

    def serve(
        self, request: Request, connection: Connection, outlet: Outlet, expected: Revision | None = None
    ) -> bytes | Coroutine[Any, Any, bytes | None]:
        """Run a request. Returns its answer or the work towards it; raises `ProtocolError`.

        `expected` is the revision that the transport was told beside the message, where it was.
        """
        try:
            client = client_of(request, connection, expected)
            method = self._find_method(request, client)
        except ProtocolError as failure:
            self._note(request, failure)
            raise
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
        # A method that does not wait is answered here, without a task: that is most of the speed of a call.
        try:
            outcome = method.run(self, context, request.params)
            if not isinstance(outcome, tuple):
                return self._finish(context, request, outcome)
            answer = self._envelope(context, outcome)
        except BaseException as error:  # noqa: BLE001  (a client always gets an answer, whatever a tool raises)
            connection.leave(context)
            return self._answer_failure(context, request, error)
        connection.leave(context)
        return answer

    def _find_method(self, request: Request, client: Client) -> Method:
        method = request.method
        if (
            method is None
            or not (method.stateless if client.revision.stateless else method.handshake)
            or not method.offered(self)
        ):
            raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {quote(request.name)}")
        if request.problem is not None:
            raise request.problem
        return method

    def _note(self, request: Request, failure: ProtocolError) -> None:
        """Tell whoever counts of an error; a method that nobody knows is not a name to count by."""
        if self._on_error is not None:
            self._on_error("(unknown)" if request.method is None else request.name, failure.code)

    async def _finish(
        self, context: Context[Any], request: Request, work: Coroutine[Any, Any, Body]
    ) -> bytes | None:
        context.task = asyncio.current_task()
        answer: bytes | None = None
        try:
            if context.cancelled:  # between its arrival and its turn: then it must not begin
                close_unstarted(work)
            else:
                answer = self._envelope(context, await work)
        except BaseException as error:
            if not context.cancelled:
                if context.is_interrupted(error):
                    raise
                answer = self._answer_failure(context, request, error)
        finally:
            context.connection.leave(context)
        return None if context.cancelled else answer

    # --- out -----------------------------------------------------------------------------------------------

    def _envelope(self, context: Context[Any], body: Body) -> bytes:
        """Put a result into its answer, by joining bytes: it is never decoded or encoded again."""
        encoded, meta = body
        if context.revision.stateless:
            head = self._complete
            if meta:
                head = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode({**self._server_meta, **meta})
        elif meta:
            head = b'{"_meta":%b' % jsonrpc.encode(meta)
        else:
            return jsonrpc.result(context.request_id, encoded)
        tail = b"}" if encoded == b"{}" else b"," + encoded[1:]
        return jsonrpc.result(context.request_id, head + tail)

    def _answer_failure(self, context: Context[Any], request: Request, error: BaseException) -> bytes:
        """Answer for a handler that did not return: it asks the client something, goes on, or failed."""
        try:
            if asked := find_input_requests(error):
                try:
                    paused = self.multi_round.pause(context, request.params, asked)
                    return self._answer_as(context, "input_required", paused)
                except TypeError as bug:  # what it asks is not JSON
                    error = bug
            elif isinstance(error, BecameTask):
                return self._answer_as(context, "task", error.described)
            from .calls.failures import give_failure  # which only a call that fails needs

            return self._envelope(context, give_failure(context, error))
        except ProtocolError as failure:
            self._note(request, failure)
            raise

    def _answer_as(self, context: Context[Any], kind: str, members: dict[str, Any]) -> bytes:
        body = {"resultType": kind, "_meta": self._server_meta, **members}
        return jsonrpc.result(context.request_id, jsonrpc.encode(body))
