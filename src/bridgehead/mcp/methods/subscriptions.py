"""Subscriptions: how a client asks to hear of changes, by subscription or by a stream that it opens."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import UNSET

from .. import changes, jsonrpc
from ..calls.context import Context
from ..calls.params import META_PREFIX, ListenFilter, ListenParams, SubscribeParams
from ..changes import Change, Listener
from ..errors import OVERLOADED, ProtocolError
from ..server import EMPTY_BODY, Body, EventualBody, Server

SUBSCRIPTION_ID = META_PREFIX + "subscriptionId"


def subscribe(server: Server, context: Context[Any], params: SubscribeParams) -> Body:
    """Tell the client from now on when a resource changes (handshake era)."""
    listener = context.connection.listener
    if listener is not None:
        if params.uri not in listener.uris and len(listener.uris) >= server.limits.subscriptions:
            raise ProtocolError(OVERLOADED, f"At most {server.limits.subscriptions} subscriptions a client")
        listener.uris.add(params.uri)
    return EMPTY_BODY


def unsubscribe(_server: Server, context: Context[Any], params: SubscribeParams) -> Body:
    """Stop telling the client of a resource's changes (handshake era)."""
    listener = context.connection.listener
    if listener is not None:
        listener.uris.discard(params.uri)
    return EMPTY_BODY


def listen(server: Server, context: Context[Any], params: ListenParams) -> EventualBody:
    """Open a stream of the changes that the client asks for (stateless era)."""
    granted = _grant(server, params.notifications)
    if len(server.streams) >= server.limits.listen_streams:
        raise ProtocolError(
            OVERLOADED, f"At most {server.limits.listen_streams} listen streams; end one first"
        )
    return _stream_changes(server, context, granted)


def _grant(server: Server, wanted: ListenFilter) -> ListenFilter:
    bridge = server.bridge
    uris: Any = UNSET
    if bridge.subscribable and wanted.resource_subscriptions is not UNSET:
        uris = wanted.resource_subscriptions[: server.limits.subscriptions]
    return ListenFilter(
        wanted.tools_list_changed and "tools" in bridge.changing,
        wanted.prompts_list_changed and "prompts" in bridge.changing,
        wanted.resources_list_changed and "resources" in bridge.changing,
        uris,
    )


async def _stream_changes(server: Server, context: Context[Any], granted: ListenFilter) -> Body:
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
    with server.open_stream(context.connection, listener):
        acknowledgement = {"_meta": meta, "notifications": granted}
        await context.notify("notifications/subscriptions/acknowledged", acknowledgement)
        while await listener.wait():
            for message in listener.take():
                await context.send(message)
    return b"{}", meta


def _encode(meta: dict[str, Any], change: Change) -> bytes:
    method, uri = change
    return jsonrpc.notification(method, {"_meta": meta} if uri is None else {"_meta": meta, "uri": uri})
