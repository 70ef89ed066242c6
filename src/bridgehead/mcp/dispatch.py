"""Dispatch: a message comes in, messages come out; no I/O.

The dispatcher runs a request's method and puts the result into the envelope of the client's revision. A
transport calls `handle_bytes` or `handle_message`. HTTP calls `methods.request.read` and `handle_request`
itself, because it compares a request with its headers in between.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from . import jsonrpc
from .calls.context import BecameTask, Context, find_input_requests
from .calls.params import CancelledParams
from .errors import INVALID_REQUEST, METHOD_NOT_FOUND, ProtocolError, quote
from .features.handlers import close_unstarted
from .lazy_imports import asyncio
from .methods.request import Request, client_of, read
from .server import Body, Server

if TYPE_CHECKING:
    from .connection import Connection, Outlet, Reply
    from .revisions import Revision


class Dispatcher(Server):
    """Handles the messages of any number of connections to one bridge."""

    def handle_bytes(self, data: bytes | memoryview, connection: Connection, outlet: Outlet) -> Reply:
        """Handle one line or HTTP body. Never raises."""
        return self.handle_message(jsonrpc.decode(data), connection, outlet)

    def handle_message(
        self,
        message: jsonrpc.Message | jsonrpc.Batch | jsonrpc.Malformed,
        connection: Connection,
        outlet: Outlet,
    ) -> Reply:
        """Handle what `jsonrpc.decode` returns: a request, a notification, an answer to us. Never raises."""
        if isinstance(message, jsonrpc.Malformed):
            return jsonrpc.error(message.id, message.error)
        if isinstance(message, jsonrpc.Batch):
            return self.handle_batch(message, connection, outlet)
        if message.method is UNSET:
            connection.take_answer(message)
            return None
        if message.id is UNSET:
            self.handle_notification(message, connection)
            return None
        request = read(message.id, message.method, message)
        try:
            return self.handle_request(request, connection, outlet, encode_errors=True)
        except ProtocolError as failure:
            return jsonrpc.error(message.id, failure)

    def handle_notification(self, message: jsonrpc.Message, connection: Connection) -> None:
        """Handle a notification; JSON-RPC forbids an answer even to an unknown or malformed one."""
        if message.method == "notifications/cancelled" and message.params is not UNSET:
            try:
                cancelled = msgspec.json.decode(message.params, type=CancelledParams)
            except jsonrpc.UNDECODABLE:
                return
            connection.cancel(cancelled.request_id)

    def handle_batch(self, batch: jsonrpc.Batch, connection: Connection, outlet: Outlet) -> Reply:
        """Handle an array of messages, which only revision 2025-03-26 has; answer with an array."""

        def refuse(request_id: jsonrpc.RequestId | None, problem: str) -> bytes:
            failure = ProtocolError(INVALID_REQUEST, f"Invalid request: {problem}")
            return jsonrpc.error(request_id, failure)

        def handle(item: jsonrpc.Message | jsonrpc.Malformed) -> Reply:
            # The revision decides whether a batch is allowed at all, so a batch cannot choose the revision.
            if isinstance(item, jsonrpc.Message) and item.method == "initialize" and item.id is not UNSET:
                return refuse(item.id, "initialize cannot be part of a batch")
            return self.handle_message(item, connection, outlet)

        client = connection.client
        if client is None or not client.revision.batches:
            return refuse(None, "batches exist only in protocol revision 2025-03-26")
        if len(batch.items) > self.limits.requests_in_flight:
            return refuse(None, f"a batch may have {self.limits.requests_in_flight} messages")
        if not any(isinstance(item, jsonrpc.Malformed) or jsonrpc.is_request(item) for item in batch.items):
            for item in batch.items:
                handle(item)
            return None
        from .batches import BatchRun  # late: only one revision has batches

        return BatchRun(batch, connection, outlet).run(handle)

    def handle_request(
        self,
        request: Request,
        connection: Connection,
        outlet: Outlet,
        expected: Revision | None = None,
        *,
        encode_errors: bool = False,
    ) -> bytes | Coroutine[Any, Any, bytes | None]:
        """Run a request; return its answer, or a coroutine for it. Raises `ProtocolError`.

        `expected` is the revision that the transport knows from outside the message (an HTTP header). The
        coroutine raises `ProtocolError` too, for HTTP, whose status depends on it; with `encode_errors` it
        returns the encoded error instead.
        """
        try:
            client = client_of(request, connection, expected)
        except ProtocolError as failure:
            self._counted(request, failure)
            raise
        method = request.method
        if (
            method is None
            or not (method.stateless if client.revision.stateless else method.handshake)
            or (method.needs and not getattr(self.bridge, method.needs))
        ):
            unknown = ProtocolError(METHOD_NOT_FOUND, f"Method not found: {quote(request.name)}")
            raise self._counted(request, unknown)
        if request.problem is not None:
            raise self._counted(request, request.problem)
        bridge = self.bridge
        if not bridge.logging:
            client.log_level = None  # a capability that is not offered is not used
        context: Context[Any] = Context(
            request.id,
            request.name,
            client,
            connection,
            outlet,
            lifespan=self.lifespans[bridge],
            dialect=bridge.dialect,
            meta=request.params.meta,
        )
        in_flight = connection.in_flight
        if request.id in in_flight:
            message = f"Invalid request: id {request.id!r} is already in flight"
            raise ProtocolError(INVALID_REQUEST, message)
        in_flight[request.id] = context
        # Fast path: a method that does not wait is answered here. With a task for each call, the task was a
        # third of the call's time (`python -m bench`).
        try:
            outcome = method.run(self, context, request.params)
            if not isinstance(outcome, tuple):
                return self._finish(context, request, outcome, encode_errors=encode_errors)
            answer = self._envelope(context, outcome)
        except BaseException as error:  # noqa: BLE001  (a client always gets an answer, whatever a tool raises)
            in_flight.pop(request.id, None)
            return self._answer_failure(context, request, error)
        in_flight.pop(request.id, None)
        return answer

    async def _finish(
        self, context: Context[Any], request: Request, work: Coroutine[Any, Any, Body], *, encode_errors: bool
    ) -> bytes | None:
        """Await a method's result; None if the client cancelled the request, which is then never answered."""
        context.task = asyncio.current_task()
        answer: bytes | None = None
        try:
            # Cancelled between its arrival and the first turn of its task: the handler must not begin.
            if context.cancelled:
                close_unstarted(work)
            else:
                answer = self._envelope(context, await work)
        except BaseException as error:
            if not context.cancelled:
                if context.is_interrupted(error):
                    raise
                try:
                    answer = self._answer_failure(context, request, error)
                except ProtocolError as failure:
                    if not encode_errors:
                        raise
                    answer = jsonrpc.error(request.id, failure)
            # What still holds the failure, such as a group of tasks or a future, would hold the frames of
            # the whole call with it, and their arguments, until the garbage collector runs.
            error.__traceback__ = None
        finally:
            context.connection.in_flight.pop(request.id, None)
        return None if context.cancelled else answer

    def _envelope(self, context: Context[Any], body: Body) -> bytes:
        """Put an encoded result into its answer by joining bytes: it is never decoded or encoded again."""
        encoded, meta = body
        if context.revision.stateless:
            head = self.complete_head
            if meta:
                head = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode({**self.info_meta, **meta})
        elif meta:
            head = b'{"_meta":%b' % jsonrpc.encode(meta)
        else:
            return jsonrpc.result(context.request_id, encoded)
        tail = b"}" if encoded == b"{}" else b"," + encoded[1:]
        return jsonrpc.result(context.request_id, head + tail)

    def _answer_failure(self, context: Context[Any], request: Request, error: BaseException) -> bytes:
        """Answer for a handler that did not return: it asks the client, became a task, or failed."""

        def answer(kind: str, members: dict[str, Any]) -> bytes:
            body = {"resultType": kind, "_meta": self.info_meta, **members}
            return jsonrpc.result(context.request_id, jsonrpc.encode(body))

        try:
            if requests := find_input_requests(error):
                try:
                    return answer("input_required", self.multi_round.pause(context, request.params, requests))
                except TypeError as bug:  # the handler's question cannot be encoded as JSON
                    error = bug
            elif isinstance(error, BecameTask):
                return answer("task", error.described)
            from .calls.failures import give_failure  # late: brings logging and secrets

            return self._envelope(context, give_failure(context, error))
        except ProtocolError as failure:
            self._counted(request, failure)
            raise

    def _counted(self, request: Request, failure: ProtocolError) -> ProtocolError:
        # A client chooses the name of an unknown method, so it must not become a label of a metric.
        if self.on_error is not None:
            self.on_error("(unknown)" if request.method is None else request.name, failure.code)
        return failure
