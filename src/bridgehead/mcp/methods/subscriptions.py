"""Subscriptions: to single resources (handshake era), or a stream of changes (stateless era)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from .. import changes, jsonrpc
from ..calls.context import Context
from ..calls.params import META_PREFIX, ListenFilter, ListenParams, SubscribeParams
from ..changes import Change, Listener
from ..errors import OVERLOADED, ProtocolError
from ..features.results import EMPTY_BODY, Body, EventualBody
from ..features.tools import TASKS_EXTENSION

if TYPE_CHECKING:
    from ..dispatch import Dispatcher
    from .tasks import TaskWatch

SUBSCRIPTION_ID = META_PREFIX + "subscriptionId"


def subscribe(dispatcher: Dispatcher, context: Context[Any], params: SubscribeParams) -> Body:
    """Send the client `notifications/resources/updated` for a resource (handshake era)."""
    listener = context.connection.listener
    if listener is not None and params.uri not in listener.uris:
        most = dispatcher.limits.subscriptions
        if len(listener.uris) >= most:
            raise ProtocolError(OVERLOADED, f"At most {most} subscriptions a client")
        _hold(dispatcher, context, changes.measure_subscriptions((params.uri,)))
        listener.uris.add(params.uri)
    return EMPTY_BODY


def unsubscribe(dispatcher: Dispatcher, context: Context[Any], params: SubscribeParams) -> Body:
    """Stop sending updates of a resource (handshake era)."""
    listener = context.connection.listener
    if listener is not None and params.uri in listener.uris:
        listener.uris.discard(params.uri)
        dispatcher.ledger.release(context.connection.caller, changes.measure_subscriptions((params.uri,)))
    return EMPTY_BODY


def _hold(dispatcher: Dispatcher, context: Context[Any], size: int) -> None:
    """Charge subscriptions to the caller; raise above its limit."""
    if not dispatcher.ledger.hold(context.connection.caller, size):
        raise ProtocolError(
            OVERLOADED,
            "You have reached the memory limit for one caller. Unsubscribe or end a session, then try again.",
        )


def listen(dispatcher: Dispatcher, context: Context[Any], params: ListenParams) -> EventualBody:
    """Open a stream of the changes that the client asks for (stateless era)."""
    bridge, wanted = dispatcher.bridge, params.notifications
    uris: Any = UNSET
    if bridge.subscribable and wanted.resource_subscriptions is not UNSET:
        uris = wanted.resource_subscriptions[: dispatcher.limits.subscriptions]
    granted = ListenFilter(
        wanted.tools_list_changed and "tools" in bridge.changing,
        wanted.prompts_list_changed and "prompts" in bridge.changing,
        wanted.resources_list_changed and "resources" in bridge.changing,
        uris,
        wanted.task_ids if bridge.has_tasks else UNSET,
    )
    if granted.task_ids is not UNSET:
        context.require_extension(TASKS_EXTENSION)
    if len(dispatcher.streams) >= dispatcher.limits.listen_streams:
        raise ProtocolError(
            OVERLOADED, f"At most {dispatcher.limits.listen_streams} listen streams; end one first"
        )
    return _stream_changes(dispatcher, context, granted)


async def _stream_changes(dispatcher: Dispatcher, context: Context[Any], granted: ListenFilter) -> Body:
    meta = {SUBSCRIPTION_ID: context.request_id}
    lists = {
        method
        for method, wanted in (
            (changes.TOOLS, granted.tools_list_changed),
            (changes.PROMPTS, granted.prompts_list_changed),
            (changes.RESOURCES, granted.resources_list_changed),
        )
        if wanted
    }
    listener = Listener(lists, set(granted.resource_subscriptions or ()), partial(_encode, meta))
    size = listener.size + changes.measure_subscriptions(granted.task_ids or ())
    _hold(dispatcher, context, size)
    try:
        async with _watch_tasks(dispatcher, context, listener, granted, meta):
            with dispatcher.open_stream(context.connection, listener):
                acknowledgement = {"_meta": meta, "notifications": granted}
                await context.notify("notifications/subscriptions/acknowledged", acknowledgement)
                while await listener.wait():
                    for message in listener.take():
                        await context.send(message)
    finally:
        dispatcher.ledger.release(context.connection.caller, size)
    return b"{}", meta


@asynccontextmanager
async def _watch_tasks(
    dispatcher: Dispatcher,
    context: Context[Any],
    listener: Listener,
    granted: ListenFilter,
    meta: dict[str, Any],
) -> AsyncIterator[None]:
    """Push changes of the requested tasks to the listener while its stream is open; only the caller's own."""
    wanted = granted.task_ids
    if isinstance(wanted, UnsetType):
        yield
        return

    from .tasks import TaskWatch  # lazy: tasks, 4 ms

    watch = TaskWatch(dispatcher, context, listener)
    listener.encode = partial(_encode, meta, watch=watch)
    try:
        await watch.begin(wanted[: dispatcher.limits.subscriptions])
        granted.task_ids = watch.ids
        yield
    finally:
        watch.end()


def _encode(meta: dict[str, Any], change: Change, watch: TaskWatch | None = None) -> bytes:
    method, subject = change
    if method == changes.TASKS and watch is not None and subject is not None:
        return jsonrpc.notification(method, {"_meta": meta, **watch.describe(subject)})
    return jsonrpc.notification(
        method, {"_meta": meta} if subject is None else {"_meta": meta, "uri": subject}
    )
