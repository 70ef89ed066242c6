"""Methods: what each request of the protocol does, and the table that finds it.

A method gets the dispatcher, the context of the call and its decoded parameters, and returns the encoded
result body with its `_meta`, or a coroutine that will. Eras, ids, envelopes and errors are the dispatcher's.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from . import jsonrpc
from .content import BlobResource, TextResource, fitted
from .context import Context
from .errors import INVALID_PARAMS, ProtocolError, ToolError
from .handlers import settled
from .listening import listen, subscribe, unsubscribe
from .listing import cache_hints, list_prompts, list_resources, list_templates, list_tools
from .opening import discover, initialize, ping, set_level
from .params import (
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
)
from .results import Body, Outcome
from .tools import Encoded, InvalidArguments, Returned, Tool, encoded, error_result, unknown_tool
from .versions import Revision

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .lifespan import Lifespan

MOST_COMPLETIONS = 100


class Method(Struct, frozen=True):
    """One method: its parameters, what it does, and in which era it exists."""

    params: type[Params]
    run: Callable[[Any, Context[Any], Any], Outcome]
    handshake: bool = True
    stateless: bool = True
    offered: Callable[[Any], bool] = lambda _: True


def call_tool(server: Dispatcher, context: Context[Any], params: CallToolParams) -> Outcome:
    """Call a tool. A plain function answers at once, or hands back the coroutine that will."""
    tool = server.bridge.tools.get(params.name)
    if tool is None:
        raise unknown_tool(params.name, list(server.bridge.tools))
    lifespan = server.at_home(context, tool.home)
    context.arguments = params.arguments
    if tool.recall is not None and lifespan.ready:
        recalled: Encoded | None = tool.recall(context)
        if recalled is not None:
            return recalled.result, None
    try:
        arguments = tool.arguments(params.arguments)
    except InvalidArguments as error:
        context.dialect.refused(tool.name, context)
        failure = context.dialect.for_revision(context.revision).invalid_arguments(tool.name, str(error))
        if isinstance(failure, ToolError):
            return encoded(error_result(failure), context.revision)
        raise failure from error
    server.rounds.resume(context, params, params.name, params.arguments)
    if tool.is_async or not lifespan.ready:
        return _call_later(lifespan, context, tool, arguments)
    returned: Any = tool.handler(arguments, context)
    if isinstance(returned, CoroutineType):
        return _encoded_later(context, returned)
    return encoded(returned, context.revision)


async def _call_later(lifespan: Lifespan, context: Context[Any], tool: Tool, arguments: Any) -> Body:
    if not lifespan.ready:
        await lifespan.entered()
    returned: Any = tool.handler(arguments, context)
    if tool.is_async or isinstance(returned, CoroutineType):
        returned = await returned
    return encoded(returned, context.revision)


async def _encoded_later(context: Context[Any], work: Coroutine[Any, Any, Returned]) -> Body:
    return encoded(await work, context.revision)


async def read_resource(server: Dispatcher, context: Context[Any], params: ReadResourceParams) -> Body:
    """Read a resource by its URI: a declared one, or the first template that fits."""
    server.rounds.resume(context, params, params.uri)
    contents = await _contents_of(server, context, params.uri)
    fitting = [fitted(item, context.revision) for item in contents]
    hints = cache_hints(server, server.bridge.read_ttl_ms) if context.revision.stateless else {}
    return jsonrpc.encode({"contents": fitting, **hints}), None


async def _contents_of(
    server: Dispatcher, context: Context[Any], uri: str
) -> list[TextResource | BlobResource]:
    resource = server.bridge.resources.get(uri)
    if resource is not None:
        await server.at_home(context, resource.home).entered()
        return await resource.read(context)
    for template in server.bridge.templates.values():
        variables = template.uri.match(uri)
        if variables is not None:
            await server.at_home(context, template.home).entered()
            return await template.read(uri, variables, context)
    raise resource_not_found(uri, context.revision)


def resource_not_found(uri: str, revision: Revision) -> ProtocolError:
    """Refuse a URI under which there is nothing, with the code that the revision gives it."""
    return ProtocolError(revision.missing_resource_code, f"Resource not found: {uri}", {"uri": uri})


async def get_prompt(server: Dispatcher, context: Context[Any], params: GetPromptParams) -> Body:
    """Make a prompt's messages."""
    prompt = server.bridge.prompts.get(params.name)
    if prompt is None:
        known = list(server.bridge.prompts)
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {params.name}", {"prompts": known})
    arguments = prompt.arguments(params.arguments)
    server.rounds.resume(context, params, params.name, params.arguments)
    await server.at_home(context, prompt.home).entered()
    return jsonrpc.encode(await prompt.messages(arguments, context)), None


async def complete(server: Dispatcher, context: Context[Any], params: CompleteParams) -> Body:
    """Complete an argument of a prompt or a variable of a template."""
    subject = _completed_subject(server, params)
    completer = server.bridge.completers.get((subject, params.argument.name))
    values: list[str] = []
    if completer is not None:
        home = (server.bridge.prompts.get(subject) or server.bridge.templates[subject]).home
        await server.at_home(context, home).entered()
        values = await settled(completer(params.argument.value, params.context.arguments, context))
    completion = {
        "values": values[:MOST_COMPLETIONS],
        "total": len(values),
        "hasMore": len(values) > MOST_COMPLETIONS,
    }
    return jsonrpc.encode({"completion": completion}), None


def _completed_subject(server: Dispatcher, params: CompleteParams) -> str:
    ref = params.ref
    subject, known = (ref.name, server.bridge.prompts) if ref.type == "ref/prompt" else (ref.uri, None)
    if subject is not None and (known is None or subject in known):
        return subject
    raise ProtocolError(INVALID_PARAMS, f"There is nothing to complete for {ref.type} {subject!r}")


def _has_tools(server: Dispatcher) -> bool:
    return bool(server.bridge.tools)


def _has_prompts(server: Dispatcher) -> bool:
    return bool(server.bridge.prompts)


def _has_resources(server: Dispatcher) -> bool:
    return server.bridge.has_resources


def _is_subscribable(server: Dispatcher) -> bool:
    return server.bridge.subscribable


def _has_completers(server: Dispatcher) -> bool:
    return bool(server.bridge.completers)


def _has_logging(server: Dispatcher) -> bool:
    return server.bridge.logging


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
}
