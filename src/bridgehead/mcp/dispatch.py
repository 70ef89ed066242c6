"""Dispatch: a message comes in, messages come out; no I/O.

A `Dispatcher` serves one bridge to any number of connections, and owns what outlives a request: lifespans,
open streams, encoded lists, tasks. It runs the method that a request names (`requests`), which returns an
encoded result body with its `_meta`, or a coroutine for one, and puts that into the envelope of the client's
revision.

Stdio calls `handle_message`, which answers a plain tool without a task: a lone call then takes 8.8 µs of CPU
instead of 12.7 (`python -m bench stdio`). Every other transport awaits `answer_message` or, over HTTP, `read`
and `answer_request`, because HTTP compares a request with its headers in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from . import changes, jsonrpc
from .batches import BatchRun
from .bridge import Bridge
from .calls.context import BecameTask, Context, find_input_requests
from .calls.multi_round import Keys, MultiRound, NonceStore
from .calls.params import META_PREFIX, CancelledParams
from .changes import Listener
from .connection import Client, Connection, Outlet, Reply
from .coroutines import close_unstarted
from .errors import INVALID_REQUEST, METHOD_NOT_FOUND, ProtocolError, forget_frames, quote
from .failures import give_failure
from .features.bridge_base import BridgeBase
from .features.results import Body
from .lifespan import Lifespan, Lifespans
from .limits import Ledger, Limits
from .requests import RpcRequest, client_of, read
from .revisions import V2026_07_28, Revision

if TYPE_CHECKING:
    from .tasks.manager import Tasks

AnyMessage = jsonrpc.Message | jsonrpc.Batch | jsonrpc.Malformed


class Dispatcher:
    """Handles the messages of any number of connections to one bridge."""

    def __init__(
        self,
        bridge: Bridge[Any],
        *,
        limits: Limits | None = None,
        state_key: Keys | None = None,
        lifespans: Lifespans | None = None,
        on_error: Callable[[str, ProtocolError], None] | None = None,
        tasks: Tasks | None = None,
        scope: str | None = None,
        nonces: NonceStore | None = None,
    ) -> None:
        self.bridge = bridge
        self.limits = limits or Limits()
        self.lifespans = Lifespans() if lifespans is None else lifespans
        """Shared by the servers of one process that offer the same bridges."""
        self.on_error = on_error
        """Called with the method and the code of each protocol error that answers a request."""
        self.ledger = Ledger()
        """Charges bytes that outlive a request to its caller; a transport with accounts sets it."""
        self.streams: set[Listener] = set()
        """The open `subscriptions/listen` streams."""
        self.multi_round = MultiRound(state_key, self.limits.request_state_seconds, nonces)
        self.scope = bridge.info.name if scope is None else scope
        """Separates this server's tasks and open questions from those of other servers with the same keys."""
        self._dialects = bridge.dialects
        # Every result of the stateless era begins with the same bytes, so they are encoded once.
        self.info_meta = {META_PREFIX + "serverInfo": bridge.info.fit(V2026_07_28)}
        self.complete_head = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode(self.info_meta)
        self._shared_tasks = tasks
        self._own_tasks: Tasks | None = None
        self._bodies: dict[Any, Body] = {}
        self._bodies_generation = 0

    @property
    def tasks(self) -> Tasks:
        """The tasks shared with other servers of this process, or this server's own."""
        if self._shared_tasks is not None:
            return self._shared_tasks
        if self._own_tasks is None:
            from .tasks.manager import Tasks  # lazy: tasks, 4 ms; most servers have none

            self._own_tasks = Tasks(self.limits, self.bridge.task_store)
            self._own_tasks.ledger = self.ledger
        return self._own_tasks

    # --- messages ------------------------------------------------------------------------------------------

    async def answer_message(
        self, message: AnyMessage, connection: Connection, outlet: Outlet
    ) -> bytes | None:
        """Handle a message as `handle_message` does, and wait for its answer."""
        reply = self.handle_message(message, connection, outlet)
        return reply if reply is None or isinstance(reply, bytes) else await reply

    async def answer_request(
        self, request: RpcRequest, connection: Connection, outlet: Outlet, expected: Revision | None = None
    ) -> bytes | None:
        """Run a request and wait for its answer; None if its client cancelled it. Raises `ProtocolError`.

        `expected` is the revision that the transport knows from outside the message (an HTTP header).
        """
        reply = self.handle_request(request, connection, outlet, expected)
        return reply if isinstance(reply, bytes) else await reply

    def handle_message(
        self,
        message: AnyMessage,
        connection: Connection,
        outlet: Outlet,
    ) -> Reply:
        """Handle what `jsonrpc.decode` returns: a request, a notification, an answer to us. Never raises."""
        if isinstance(message, jsonrpc.Malformed):
            return jsonrpc.error(message.id, message.error)
        if isinstance(message, jsonrpc.Batch):
            try:
                self.check_batch(message, connection)
            except ProtocolError as failure:
                return jsonrpc.error(None, failure)
            return self.answer_batch(message, connection, outlet)
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

    def check_batch(self, batch: jsonrpc.Batch, connection: Connection) -> None:
        """Raise `ProtocolError` unless this client may send this array: only revision 2025-03-26 has them."""
        client = connection.client
        if client is None or not client.revision.batches:
            problem = "batches exist only in protocol revision 2025-03-26"
            raise ProtocolError(INVALID_REQUEST, f"Invalid request: {problem}")
        if len(batch.items) > self.limits.requests_in_flight:
            problem = f"a batch may have {self.limits.requests_in_flight} messages"
            raise ProtocolError(INVALID_REQUEST, f"Invalid request: {problem}")

    async def answer_batch(
        self, batch: jsonrpc.Batch, connection: Connection, outlet: Outlet
    ) -> bytes | None:
        """Handle an array of messages; answer with an array, or None if nothing asks for an answer."""

        def handle(item: jsonrpc.Message | jsonrpc.Malformed) -> Reply:
            # The revision decides whether a batch is allowed at all, so a batch cannot choose the revision.
            if isinstance(item, jsonrpc.Message) and item.method == "initialize" and item.id is not UNSET:
                problem = "Invalid request: initialize cannot be part of a batch"
                return jsonrpc.error(item.id, ProtocolError(INVALID_REQUEST, problem))
            return self.handle_message(item, connection, outlet)

        return await BatchRun(batch, connection, outlet).run(handle)

    def handle_request(
        self,
        request: RpcRequest,
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
            client.log_level = None  # no log messages without the capability
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
        self,
        context: Context[Any],
        request: RpcRequest,
        work: Coroutine[Any, Any, Body],
        *,
        encode_errors: bool,
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
            forget_frames(error)
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
        if len(encoded) > jsonrpc.LARGE_BYTES:
            return jsonrpc.large_result(context.request_id, head, b",", memoryview(encoded)[1:])
        tail = b"}" if encoded == b"{}" else b"," + encoded[1:]
        return jsonrpc.result(context.request_id, head + tail)

    def _answer_failure(self, context: Context[Any], request: RpcRequest, error: BaseException) -> bytes:
        """Answer a request whose handler raised: it asks the client, became a task, or failed."""

        def answer(kind: str, members: dict[str, Any]) -> bytes:
            body = {"resultType": kind, "_meta": self.info_meta, **members}
            return jsonrpc.result(context.request_id, jsonrpc.encode(body))

        try:
            if requests := find_input_requests(error):
                try:
                    owner = self.owner_of(context)
                    question = self.multi_round.pause(context, owner, request.params, requests)
                    return answer("input_required", question)
                except TypeError as bug:  # the handler's question cannot be encoded as JSON
                    error = bug
            elif isinstance(error, BecameTask):
                return answer("task", error.described)

            return self._envelope(context, give_failure(context, error))
        except ProtocolError as failure:
            self._counted(request, failure)
            forget_frames(failure)
            del error  # the same exception: its new traceback contains this frame
            raise

    def owner_of(self, context: Context[Any]) -> str:
        """Return whose the tasks and open questions of a request are: this server's, of this caller.

        A new token of the same name is another caller's.
        """
        token_id = getattr(context.outlet, "token_id", "")
        return f"{self.scope}\n{context.principal or ''}\n{token_id}"

    def _counted(self, request: RpcRequest, failure: ProtocolError) -> ProtocolError:
        # A client chooses the name of an unknown method, so it must not become a label of a metric.
        if self.on_error is not None:
            self.on_error("(unknown)" if request.method is None else request.name, failure)
        return failure

    # --- what outlives a request ---------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to enter the lifespans of the bridges, without waiting."""
        for bridge in self.bridge.bridges:
            self.lifespans[bridge].start()

    async def stop(self) -> None:
        """Stop this server's own tasks and leave the lifespans, within `shutdown_seconds`."""
        if self._own_tasks is not None:
            await self._own_tasks.stop()
        within = self.limits.shutdown_seconds
        await asyncio.gather(*(self.lifespans[bridge].stop(within) for bridge in self.bridge.bridges))

    def switch_bridge(self, context: Context[Any], bridge: BridgeBase) -> Lifespan:
        """Let a request continue with the state and dialect of one of the combined bridges."""
        lifespan = self.lifespans[bridge]
        if bridge is not self.bridge:
            context.lifespan, context.dialect = lifespan, self._dialects.get(bridge, bridge.dialect)
        return lifespan

    def reuse_body(self, key: Any, make: Callable[[], Body]) -> Body:
        """Return the body cached under this key; the cache is emptied when the bridge's lists change."""
        generation = self.bridge.changed.generation
        if self._bodies_generation != generation:
            self._bodies.clear()
            self._bodies_generation = generation
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = make()
        return body

    def shows_contract(self, client: Client) -> bool:
        """Whether a client gets only the bridge's contract, because it named no revision."""
        return not client.names_revision and self.bridge.contract_revision is not None

    def adopt(self, connection: Connection, client: Client) -> None:
        """Record the client of a handshake on its connection, and send it list changes from now on."""
        connection.client = client
        if connection.listener is None:  # a second `initialize` keeps the listener with its subscriptions
            names = {"tools": changes.TOOLS, "prompts": changes.PROMPTS, "resources": changes.RESOURCES}
            kinds = () if self.shows_contract(client) else self.bridge.changing
            connection.listener = Listener({names[kind] for kind in kinds}, set())
            self.bridge.changed.listen(connection.listener)
            connection.listeners.append(connection.listener)

    @staticmethod
    async def announce(listener: Listener, outlet: Outlet) -> None:
        """Send changes to a client of the handshake era until its connection ends."""
        while await listener.wait():
            for message in listener.take():
                await outlet.send(message)

    @contextmanager
    def open_stream(self, connection: Connection, listener: Listener) -> Iterator[None]:
        """Count a listen stream and let its listener receive changes while it is open."""
        self.streams.add(listener)
        self.bridge.changed.listen(listener)
        connection.listeners.append(listener)
        try:
            with connection.park():
                yield
        finally:
            connection.listeners.remove(listener)
            self.bridge.changed.leave(listener)
            self.streams.discard(listener)

    def disconnect(self, connection: Connection) -> None:
        """Stop all work for a client that is gone."""
        if connection.listener is not None:
            self.bridge.changed.leave(connection.listener)
            connection.listener.close()
            self.ledger.release(connection.caller, connection.listener.size)
            connection.listener.uris.clear()  # a second call releases nothing
        connection.abandon_asked()
        connection.cancel_all()

    def end_streams(self) -> None:
        """End every listen stream with its result, because the server stops."""
        for listener in tuple(self.streams):
            listener.close()
