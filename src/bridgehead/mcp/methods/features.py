"""Calling what a bridge declares: `tools/call`, `resources/read`, `prompts/get`, `completion/complete`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import CoroutineType
from typing import Any

from .. import jsonrpc
from ..calls.call_hook import Invocation
from ..calls.context import Context
from ..calls.params import CallToolParams, CompleteParams, GetPromptParams, ReadResourceParams
from ..errors import INVALID_PARAMS, ProtocolError, quote
from ..features.bridge_base import BridgeBase
from ..features.content import BlobResource, TextResource, fit
from ..features.handlers import settle
from ..features.prompts import PromptResult
from ..features.tools import TASKS_EXTENSION, Encoded, Returned, Tool, encode_result, unknown_tool
from ..revisions import Revision
from ..server import Body, EventualBody, Server
from .listing import cache_hints

MAX_COMPLETIONS = 100


def call_tool(server: Server, context: Context[Any], params: CallToolParams) -> EventualBody:
    """Call a tool. A plain function answers at once, or hands back the coroutine that will."""
    tool = server.bridge.tools.get(params.name)
    if tool is None:
        known = [name for name, one in server.bridge.tools.items() if one.visible_to == "everyone"]
        raise unknown_tool(params.name, known)
    bridge = tool.bridge
    if bridge is not server.bridge:
        server.switch_bridge(context, bridge)
    context.arguments = params.arguments
    may_be_task = tool.task is not None and _may_become_task(context, tool)
    hook = bridge.call_hook
    if hook is None:  # nothing is made for a hook where there is none: each step here counts on every call
        returned = _run_tool(server, context, tool, params)
    else:
        call = Invocation("tool", tool.name, context)
        returned = hook(call, lambda: _run_tool(server, context, tool, params, call))
    if isinstance(returned, CoroutineType):
        if may_be_task:
            from ..tasks.methods import call_as_task  # which nothing needs before there is a task

            return call_as_task(server, context, tool, returned)
        return _encode_later(context, returned)
    return encode_result(returned, context.revision)


def _may_become_task(context: Context[Any], tool: Tool) -> bool:
    """Tell whether the client can take a task for this very call; refuse it where it has to."""
    if context.revision.stateless and TASKS_EXTENSION in context.client.extensions:
        return True
    if tool.task == "required":
        raise context.miss_extension(TASKS_EXTENSION)
    return False


def _run_tool(
    server: Server,
    context: Context[Any],
    tool: Tool,
    params: CallToolParams,
    call: Invocation | None = None,
) -> Any:
    """Run a tool, or find its answer; returns what its handler returned, or a coroutine that will."""
    lifespan = context.lifespan
    if tool.recall is not None and lifespan.ready:
        recalled: Encoded | None = tool.recall(context)
        if recalled is not None:
            return recalled
    arguments = tool.arguments(params.arguments)
    if call is not None:
        call.arguments = arguments
    checking = None
    if context.revision.stateless:
        checking = server.multi_round.resume(
            context, params, params.name, params.arguments, needs_state=tool.is_destructive
        )
    if lifespan.ready and checking is None:
        return tool.handler(arguments, context)
    return _run_when_ready(context, tool, arguments, checking)


async def _run_when_ready(
    context: Context[Any], tool: Tool, arguments: Any, checking: Awaitable[None] | None = None
) -> Any:
    if checking is not None:
        await checking
    await context.lifespan.wait_until_entered()
    returned: Any = tool.handler(arguments, context)
    return await returned if isinstance(returned, CoroutineType) else returned


async def _encode_later(context: Context[Any], work: Coroutine[Any, Any, Returned]) -> Body:
    return encode_result(await work, context.revision)


async def read_resource(server: Server, context: Context[Any], params: ReadResourceParams) -> Body:
    """Read a resource by its URI: a declared one, or the first template that fits."""
    bridge, read = _find_reader(server, context, params.uri)
    lifespan = server.switch_bridge(context, bridge)

    async def run() -> list[TextResource | BlobResource]:
        checking = server.multi_round.resume(context, params, params.uri)
        if checking is not None:
            await checking
        await lifespan.wait_until_entered()
        return await read(context)

    call = Invocation("resource", params.uri, context)
    contents = await (run() if bridge.call_hook is None else settle(bridge.call_hook(call, run)))
    fitting = [fit(item, context.revision) for item in contents]
    hints = cache_hints(server, _find_ttl(server, params.uri)) if context.revision.stateless else {}
    return jsonrpc.encode({"contents": fitting, **hints}), None


def _find_ttl(server: Server, uri: str) -> int:
    resource = server.bridge.resources.get(uri)
    if resource is None or resource.ttl_ms is None:
        return server.bridge.read_ttl_ms
    return resource.ttl_ms


def _find_reader(
    server: Server, context: Context[Any], uri: str
) -> tuple[BridgeBase, Callable[[Context[Any]], Awaitable[list[TextResource | BlobResource]]]]:
    resource = server.bridge.resources.get(uri)
    if resource is not None:
        return resource.bridge, resource.read
    for template in server.bridge.templates.values():
        variables = template.uri.match(uri)
        if variables is not None:
            return template.bridge, partial(template.read, uri, variables)
    raise resource_not_found(uri, context.revision)


def resource_not_found(uri: str, revision: Revision) -> ProtocolError:
    """Refuse a URI under which there is nothing, with the code that the revision gives it."""
    return ProtocolError(revision.missing_resource_code, f"Resource not found: {quote(uri)}", {"uri": uri})


async def get_prompt(server: Server, context: Context[Any], params: GetPromptParams) -> Body:
    """Make a prompt's messages."""
    prompt = server.bridge.prompts.get(params.name)
    if prompt is None:
        known = list(server.bridge.prompts)
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {quote(params.name)}", {"prompts": known})
    lifespan = server.switch_bridge(context, prompt.bridge)
    call = Invocation("prompt", prompt.name, context)

    async def run() -> PromptResult:
        call.arguments = prompt.arguments(params.arguments)
        checking = server.multi_round.resume(context, params, params.name, params.arguments)
        if checking is not None:
            await checking
        await lifespan.wait_until_entered()
        return await prompt.messages(call.arguments, context)

    hook = prompt.bridge.call_hook
    return jsonrpc.encode(await (run() if hook is None else settle(hook(call, run)))), None


async def complete(server: Server, context: Context[Any], params: CompleteParams) -> Body:
    """Complete an argument of a prompt or a variable of a template."""
    subject = _completed_subject(server, params)
    completer = server.bridge.completers.get((subject, params.argument.name))
    values: list[str] = []
    if completer is not None:
        bridge = (server.bridge.prompts.get(subject) or server.bridge.templates[subject]).bridge
        await server.switch_bridge(context, bridge).wait_until_entered()
        values = await settle(completer(params.argument.value, params.context.arguments, context))
    completion = {
        "values": values[:MAX_COMPLETIONS],
        "total": len(values),
        "hasMore": len(values) > MAX_COMPLETIONS,
    }
    return jsonrpc.encode({"completion": completion}), None


def _completed_subject(server: Server, params: CompleteParams) -> str:
    ref = params.ref
    subject, known = (ref.name, server.bridge.prompts) if ref.type == "ref/prompt" else (ref.uri, None)
    if subject is not None and (known is None or subject in known):
        return subject
    asked = f"{quote(ref.type)} '{quote(subject or '')}'"
    raise ProtocolError(INVALID_PARAMS, f"There is nothing to complete for {asked}")
