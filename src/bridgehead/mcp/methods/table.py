"""The table of methods: which parameters each one takes, what it does, and in which era it exists.

A method gets the server, the context of the call and its decoded parameters, and returns the encoded result
body with its `_meta`, or a coroutine that will. Eras, ids, envelopes and errors are the dispatcher's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ..calls.context import Context
from ..calls.params import (
    CallToolParams,
    CompleteParams,
    GetPromptParams,
    InitializeParams,
    ListenParams,
    PageParams,
    Params,
    ReadResourceParams,
    SetLevelParams,
    SubscribeParams,
    TaskParams,
    UpdateTaskParams,
)
from ..server import EventualBody, Server
from .features import call_tool, complete, get_prompt, read_resource
from .handshake import discover, initialize, ping, set_level
from .listing import list_prompts, list_resources, list_templates, list_tools
from .subscriptions import listen, subscribe, unsubscribe


class Method(Struct, frozen=True):
    """One method: its parameters, what it does, and in which era it exists."""

    params: type[Params]
    run: Callable[[Any, Context[Any], Any], EventualBody]
    handshake: bool = True
    stateless: bool = True
    offered: Callable[[Any], bool] = lambda _: True


def _has_tools(server: Server) -> bool:
    return bool(server.bridge.tools)


def _has_prompts(server: Server) -> bool:
    return bool(server.bridge.prompts)


def _has_resources(server: Server) -> bool:
    return server.bridge.has_resources


def _is_subscribable(server: Server) -> bool:
    return server.bridge.subscribable


def _has_completers(server: Server) -> bool:
    return bool(server.bridge.completers)


def _has_logging(server: Server) -> bool:
    return server.bridge.logging


def _has_tasks(server: Server) -> bool:
    return server.bridge.has_tasks


def _get_task(server: Server, context: Context[Any], params: TaskParams) -> EventualBody:
    from ..tasks.methods import get_task  # here and below: a server without tasks never imports them

    return get_task(server, context, params)


def _update_task(server: Server, context: Context[Any], params: UpdateTaskParams) -> EventualBody:
    from ..tasks.methods import update_task

    return update_task(server, context, params)


def _cancel_task(server: Server, context: Context[Any], params: TaskParams) -> EventualBody:
    from ..tasks.methods import cancel_task

    return cancel_task(server, context, params)


METHODS: dict[str, Method] = {
    "initialize": Method(InitializeParams, initialize, stateless=False),
    "server/discover": Method(Params, discover, handshake=False),
    "ping": Method(Params, ping, stateless=False),
    "logging/setLevel": Method(SetLevelParams, set_level, stateless=False, offered=_has_logging),
    "tools/list": Method(PageParams, list_tools, offered=_has_tools),
    "tools/call": Method(CallToolParams, call_tool, offered=_has_tools),
    "resources/list": Method(PageParams, list_resources, offered=_has_resources),
    "resources/templates/list": Method(PageParams, list_templates, offered=_has_resources),
    "resources/read": Method(ReadResourceParams, read_resource, offered=_has_resources),
    "resources/subscribe": Method(SubscribeParams, subscribe, stateless=False, offered=_is_subscribable),
    "resources/unsubscribe": Method(SubscribeParams, unsubscribe, stateless=False, offered=_is_subscribable),
    "prompts/list": Method(PageParams, list_prompts, offered=_has_prompts),
    "prompts/get": Method(GetPromptParams, get_prompt, offered=_has_prompts),
    "completion/complete": Method(CompleteParams, complete, offered=_has_completers),
    "subscriptions/listen": Method(ListenParams, listen, handshake=False),
    "tasks/get": Method(TaskParams, _get_task, handshake=False, offered=_has_tasks),
    "tasks/update": Method(UpdateTaskParams, _update_task, handshake=False, offered=_has_tasks),
    "tasks/cancel": Method(TaskParams, _cancel_task, handshake=False, offered=_has_tasks),
}
