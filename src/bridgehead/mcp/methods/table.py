"""Methods: what each request of the protocol does, and the table that finds it.

A method gets the dispatcher, the context of the call and its decoded parameters, and returns the encoded
result body with its `_meta`, or a coroutine that will. Eras, ids, envelopes and errors are the dispatcher's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from .. import jsonrpc
from ..calls.call_hook import Invocation
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
)
from ..errors import INVALID_PARAMS, ProtocolError
from ..features.content import BlobResource, TextResource, fitted
from ..features.handlers import settled
from ..features.prompts import PromptResult
from ..features.tools import Encoded, InvalidArguments, Returned, Tool, encoded, unknown_tool
from ..results import Body, Outcome
from ..revisions import Revision
from .handshake import discover, initialize, ping, set_level
from .listing import cache_hints, list_prompts, list_resources, list_templates, list_tools
from .subscriptions import listen, subscribe, unsubscribe

if TYPE_CHECKING:
    from ..bridge import Bridge
    from ..dispatch import Dispatcher
    from ..lifespan import Lifespan

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
    hook = tool.home.call_hook
    if hook is None:  # the usual case, which is why nothing is made for a hook before this is known
        returned = _run_tool(server, lifespan, context, tool, params)
    else:
        call = Invocation("tool", tool.name, context)
        returned = hook(call, lambda: _run_tool(server, lifespan, context, tool, params, call))
    if isinstance(returned, CoroutineType):
        return _encode_later(context, returned)
    return encoded(returned, context.revision)


def _run_tool(
    server: Dispatcher,
    lifespan: Lifespan,
    context: Context[Any],
    tool: Tool,
    params: CallToolParams,
    call: Invocation | None = None,
) -> Any:
    """Run a tool, or find its answer; returns what its handler returned, or a coroutine that will."""
    if tool.recall is not None and lifespan.ready:
        recalled: Encoded | None = tool.recall(context)
        if recalled is not None:
            return recalled
    try:
        arguments = tool.arguments(params.arguments)
    except InvalidArguments:
        context.dialect.refused(tool.name, context)
        raise
    if call is not None:
        call.arguments = arguments
    server.rounds.resume(context, params, params.name, params.arguments)
    if lifespan.ready:
        return tool.handler(arguments, context)
    return _run_when_ready(lifespan, context, tool, arguments)


async def _run_when_ready(lifespan: Lifespan, context: Context[Any], tool: Tool, arguments: Any) -> Any:
    await lifespan.entered()
    returned: Any = tool.handler(arguments, context)
    return await returned if isinstance(returned, CoroutineType) else returned


async def _encode_later(context: Context[Any], work: Coroutine[Any, Any, Returned]) -> Body:
    return encoded(await work, context.revision)


async def read_resource(server: Dispatcher, context: Context[Any], params: ReadResourceParams) -> Body:
    """Read a resource by its URI: a declared one, or the first template that fits."""
    home, read = _find_reader(server, context, params.uri)
    lifespan = server.at_home(context, home)

    async def run() -> list[TextResource | BlobResource]:
        server.rounds.resume(context, params, params.uri)
        await lifespan.entered()
        return await read(context)

    call = Invocation("resource", params.uri, context)
    contents = await (run() if home.call_hook is None else settled(home.call_hook(call, run)))
    fitting = [fitted(item, context.revision) for item in contents]
    hints = cache_hints(server, server.bridge.read_ttl_ms) if context.revision.stateless else {}
    return jsonrpc.encode({"contents": fitting, **hints}), None


def _find_reader(
    server: Dispatcher, context: Context[Any], uri: str
) -> tuple[Bridge[Any], Callable[[Context[Any]], Awaitable[list[TextResource | BlobResource]]]]:
    resource = server.bridge.resources.get(uri)
    if resource is not None:
        return resource.home, resource.read
    for template in server.bridge.templates.values():
        variables = template.uri.match(uri)
        if variables is not None:
            return template.home, partial(template.read, uri, variables)
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
    lifespan = server.at_home(context, prompt.home)
    call = Invocation("prompt", prompt.name, context)

    async def run() -> PromptResult:
        call.arguments = prompt.arguments(params.arguments)
        server.rounds.resume(context, params, params.name, params.arguments)
        await lifespan.entered()
        return await prompt.messages(call.arguments, context)

    hook = prompt.home.call_hook
    return jsonrpc.encode(await (run() if hook is None else settled(hook(call, run)))), None


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
