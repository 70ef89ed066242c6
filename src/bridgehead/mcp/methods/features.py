"""Methods that run the parts of a bridge: `tools/call`, `resources/read`, `prompts/get`, completion."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import CoroutineType
from typing import Any

from msgspec import UNSET

from .. import jsonrpc
from ..calls.call_hook import Invocation
from ..calls.context import Context
from ..calls.params import CallToolParams, CompleteParams, GetPromptParams, ReadResourceParams
from ..errors import INVALID_PARAMS, ProtocolError, quote
from ..features.bridge_base import BridgeBase
from ..features.content import BlobResource, TextResource, fit
from ..features.handlers import settle
from ..features.prompts import PromptResult
from ..features.results import Encoded, ReturnType, encode_result
from ..features.tools import TASKS_EXTENSION, Tool, unknown_tool
from ..revisions import Revision
from ..server import Body, EventualBody, Server
from .listing import cache_hints

MAX_COMPLETIONS = 100
_MANY_BYTES = 1024 * 1024
"""After encoding a result above this, yield to the loop."""


def call_tool(server: Server, context: Context[Any], params: CallToolParams) -> EventualBody:
    """Call a tool. A plain `def` handler is answered at once, without a coroutine."""
    served = server.bridge
    tool = served.tools.get(params.name)
    if tool is None:
        known = [name for name, other in served.tools.items() if other.visible_to == "everyone"]
        raise unknown_tool(params.name, known, served.hidden.get(params.name, ""))
    bridge = tool.bridge
    if bridge is not served:
        server.switch_bridge(context, bridge)
    context.arguments = params.arguments
    may_be_task = False
    if tool.task is not None:
        # A client of the stateless era declares its extensions with each request.
        may_be_task = context.revision.stateless and TASKS_EXTENSION in context.client.extensions
        if not may_be_task and tool.task == "required":
            raise context.miss_extension(TASKS_EXTENSION)
    hook = bridge.call_hook
    if hook is None:  # no Invocation and no closure: each allocation here costs every call
        returned = _run_tool(server, context, tool, params)
    else:
        call = Invocation("tool", tool.name, context)
        returned = hook(call, partial(_run_tool, server, context, tool, params, call))
    if tool.reword_returned is not None:  # after the hook, which may add notes
        returned = tool.reword_returned(returned)
    if isinstance(returned, CoroutineType):
        if may_be_task:
            from ..tasks.methods import call_as_task  # lazy: tasks, 4 ms

            return call_as_task(server, context, tool, returned)
        return _encode_awaited(context, returned, tool.returns)
    return encode_result(returned, context.revision, tool.returns)


async def _encode_awaited(context: Context[Any], work: Coroutine[Any, Any, Any], returns: ReturnType) -> Body:
    body = encode_result(await work, context.revision, returns)
    if len(body[0]) > _MANY_BYTES:  # encoding 16 MB takes 14 ms, and putting it into its answer 9 ms
        await asyncio.sleep(0)
    return body


def _run_tool(
    server: Server,
    context: Context[Any],
    tool: Tool,
    params: CallToolParams,
    call: Invocation | None = None,
) -> Any:
    """Return a recalled answer, or the handler's return value, or a coroutine for it."""
    lifespan = context.lifespan
    if tool.recall is not None and lifespan.ready:
        recalled: Encoded | None = tool.recall(context)
        if recalled is not None:
            return recalled
    try:
        arguments = tool.decode(params.arguments)
    except jsonrpc.UNDECODABLE:
        arguments = tool.decode_leniently(params.arguments)
    if call is not None:
        call.arguments = arguments
    nonce_check = None
    # Only a repeated request, after a question, carries a state or answers.
    if params.request_state is not UNSET or params.input_responses is not UNSET:
        nonce_check = server.multi_round.resume(
            context, params, params.name, params.arguments, needs_state=tool.is_destructive
        )
    if lifespan.ready and nonce_check is None:
        return tool.handler(arguments, context)
    return _run_when_ready(context, tool, arguments, nonce_check)


async def _run_when_ready(
    context: Context[Any], tool: Tool, arguments: Any, nonce_check: Awaitable[None] | None
) -> Any:
    if nonce_check is not None:
        await nonce_check
    await context.lifespan.wait_until_entered()
    returned: Any = tool.handler(arguments, context)
    return await returned if isinstance(returned, CoroutineType) else returned


async def read_resource(server: Server, context: Context[Any], params: ReadResourceParams) -> Body:
    """Read a resource by its URI: a declared one, or the first template that matches."""
    bridge: BridgeBase
    read: Callable[[Context[Any]], Awaitable[list[TextResource | BlobResource]]]
    resource = server.bridge.resources.get(params.uri)
    if resource is not None:
        bridge, read = resource.bridge, resource.read
    else:
        for template in server.bridge.templates.values():
            variables = template.uri.match(params.uri)
            if variables is not None:
                bridge, read = template.bridge, partial(template.read, params.uri, variables)
                break
        else:
            raise resource_not_found(params.uri, context.revision)
    lifespan = server.switch_bridge(context, bridge)

    async def run() -> list[TextResource | BlobResource]:
        nonce_check = server.multi_round.resume(context, params, params.uri)
        if nonce_check is not None:
            await nonce_check
        await lifespan.wait_until_entered()
        return await read(context)

    call = Invocation("resource", params.uri, context)
    contents = await (run() if bridge.call_hook is None else settle(bridge.call_hook(call, run)))
    body: dict[str, Any] = {"contents": [fit(item, context.revision) for item in contents]}
    if context.revision.stateless:
        own_ttl = None if resource is None else resource.ttl_ms
        body |= cache_hints(server, server.bridge.read_ttl_ms if own_ttl is None else own_ttl)
    return jsonrpc.encode(body), None


def resource_not_found(uri: str, revision: Revision) -> ProtocolError:
    """Make the error for an unknown URI; its code differs between revisions."""
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
        nonce_check = server.multi_round.resume(context, params, params.name, params.arguments)
        if nonce_check is not None:
            await nonce_check
        await lifespan.wait_until_entered()
        return await prompt.messages(call.arguments, context)

    hook = prompt.bridge.call_hook
    return jsonrpc.encode(await (run() if hook is None else settle(hook(call, run)))), None


async def complete(server: Server, context: Context[Any], params: CompleteParams) -> Body:
    """Complete an argument of a prompt or a variable of a template."""
    ref = params.ref
    is_prompt = ref.type == "ref/prompt"
    subject = ref.name if is_prompt else ref.uri
    # A template may be offered without a completer, and its URI is not checked: the list is then empty.
    if subject is None or (is_prompt and subject not in server.bridge.prompts):
        reference = f"{quote(ref.type)} '{quote(subject or '')}'"
        raise ProtocolError(INVALID_PARAMS, f"There is nothing to complete for {reference}")
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
