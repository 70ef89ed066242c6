"""Methods that run the parts of a bridge: `tools/call`, `resources/read`, `prompts/get`, completion."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from .. import jsonrpc
from ..calls.call_hook import Invocation
from ..calls.context import Context
from ..calls.params import CallToolParams, CompleteParams, GetPromptParams, ReadResourceParams
from ..coroutines import settle
from ..errors import INVALID_PARAMS, ProtocolError, ToolError, quote
from ..features.bridge_base import BridgeBase
from ..features.prompts import PromptResult
from ..features.results import Body, EventualBody, InvalidResult
from ..features.tools import TASKS_EXTENSION, Tool, unknown_tool
from ..revisions import Revision
from ..values.content import BlobResource, TextResource, fit
from .listing import cache_hints

if TYPE_CHECKING:
    from ..dispatch import Dispatcher

BLOCKING_SECONDS = 0.1
"""A plain `def` that takes longer keeps all other callers waiting, and is reported."""
MAX_COMPLETIONS = 100
_MANY_BYTES = 1024 * 1024
"""After encoding a result above this, yield to the loop."""


def call_tool(dispatcher: Dispatcher, context: Context[Any], params: CallToolParams) -> EventualBody:
    """Call a tool. A plain `def` handler is answered at once, without a coroutine."""
    served = dispatcher.bridge
    tool = served.tools.get(params.name)
    if tool is None:
        known = [name for name, other in served.tools.items() if other.visible_to == "everyone"]
        raise unknown_tool(params.name, known, served.hidden.get(params.name, ""))
    bridge = tool.bridge
    if bridge is not served:
        dispatcher.switch_bridge(context, bridge)
    context.arguments = params.arguments
    if tool.scopes and (caller := context.caller) is not None and not tool.scopes <= caller.scopes:
        missing = ", ".join(sorted(tool.scopes - caller.scopes))
        raise ToolError(f"{params.name} needs a token with the scope {missing}.")
    may_be_task = False
    if tool.task is not None:
        # A client of the stateless era declares its extensions with each request.
        may_be_task = context.revision.stateless and TASKS_EXTENSION in context.client.extensions
        if not may_be_task and tool.task == "required":
            raise context.miss_extension(TASKS_EXTENSION)
    hook = bridge.call_hook
    call: Invocation | None = None
    if hook is None:  # no Invocation and no closure: each allocation here costs every call
        returned = _run_tool(dispatcher, context, tool, params)
    else:
        call = Invocation("tool", tool.name, context)
        returned = hook(call, partial(_run_tool, dispatcher, context, tool, params, call))
    if isinstance(returned, CoroutineType):
        if may_be_task:
            from .tasks import call_as_task  # lazy: tasks, 4 ms

            return call_as_task(dispatcher, context, tool, returned)
        return _encode_awaited(context, tool, returned, call)
    body = tool.encode(returned, context.revision)
    if call is not None:
        call.answer_bytes = len(body[0])
    return body


async def _encode_awaited(
    context: Context[Any], tool: Tool, work: Coroutine[Any, Any, Any], call: Invocation | None
) -> Body:
    body = tool.encode(await work, context.revision)
    if call is not None:
        call.answer_bytes = len(body[0])
    if len(body[0]) > _MANY_BYTES:  # encoding 16 MB takes 14 ms, and putting it into its answer 9 ms
        await asyncio.sleep(0)
    return body


def _run_tool(
    dispatcher: Dispatcher,
    context: Context[Any],
    tool: Tool,
    params: CallToolParams,
    call: Invocation | None = None,
) -> Any:
    """Return the handler's return value, or a coroutine for it."""
    try:
        arguments = tool.decode(params.arguments)
    except jsonrpc.UNDECODABLE:
        arguments = tool.decode_leniently(params.arguments)
    if call is not None:
        call.arguments = arguments
    # Only a repeated request, after a question, carries a state or answers.
    is_repeated = params.request_state is not UNSET or params.input_responses is not UNSET
    if context.lifespan.ready and not is_repeated:
        began = perf_counter()
        returned = tool.handler(arguments, context)
        if perf_counter() - began > BLOCKING_SECONDS:
            tool.report_blocking(perf_counter() - began)
        return returned
    return _run_when_ready(dispatcher, context, tool, params, arguments)


async def _run_when_ready(
    dispatcher: Dispatcher, context: Context[Any], tool: Tool, params: CallToolParams, arguments: Any
) -> Any:
    owner = dispatcher.owner_of(context)
    await dispatcher.multi_round.resume(
        context, owner, params, params.name, params.arguments, needs_state=tool.is_destructive
    )
    await context.lifespan.wait_until_entered()
    return await settle(tool.handler(arguments, context))


async def read_resource(dispatcher: Dispatcher, context: Context[Any], params: ReadResourceParams) -> Body:
    """Read a resource by its URI: a declared one, or the first template that matches."""
    bridge: BridgeBase
    read: Callable[[Context[Any]], Awaitable[list[TextResource | BlobResource]]]
    resource = dispatcher.bridge.resources.get(params.uri)
    if resource is not None:
        bridge, read = resource.bridge, resource.read
    else:
        for template in dispatcher.bridge.templates.values():
            variables = template.uri.match(params.uri)
            if variables is not None:
                bridge, read = template.bridge, partial(template.read, params.uri, variables)
                break
        else:
            raise resource_not_found(params.uri, context.revision)
    lifespan = dispatcher.switch_bridge(context, bridge)

    async def run() -> list[TextResource | BlobResource]:
        await dispatcher.multi_round.resume(context, dispatcher.owner_of(context), params, params.uri)
        await lifespan.wait_until_entered()
        return await read(context)

    call = Invocation("resource", params.uri, context)
    contents = await (run() if bridge.call_hook is None else settle(bridge.call_hook(call, run)))
    body: dict[str, Any] = {"contents": [fit(item, context.revision) for item in contents]}
    if context.revision.stateless:
        own_ttl = None if resource is None else resource.ttl_ms
        body |= cache_hints(dispatcher, dispatcher.bridge.read_ttl_ms if own_ttl is None else own_ttl)
    return jsonrpc.encode(body), None


def resource_not_found(uri: str, revision: Revision) -> ProtocolError:
    """Make the error for an unknown URI; its code differs between revisions."""
    return ProtocolError(revision.missing_resource_code, f"Resource not found: {quote(uri)}", {"uri": uri})


async def get_prompt(dispatcher: Dispatcher, context: Context[Any], params: GetPromptParams) -> Body:
    """Make a prompt's messages."""
    prompt = dispatcher.bridge.prompts.get(params.name)
    if prompt is None:
        known = list(dispatcher.bridge.prompts)
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {quote(params.name)}", {"prompts": known})
    lifespan = dispatcher.switch_bridge(context, prompt.bridge)
    call = Invocation("prompt", prompt.name, context)

    async def run() -> PromptResult:
        call.arguments = prompt.arguments(params.arguments)
        owner = dispatcher.owner_of(context)
        await dispatcher.multi_round.resume(context, owner, params, params.name, params.arguments)
        await lifespan.wait_until_entered()
        return await prompt.messages(call.arguments, context)

    hook = prompt.bridge.call_hook
    return jsonrpc.encode(await (run() if hook is None else settle(hook(call, run)))), None


async def complete(dispatcher: Dispatcher, context: Context[Any], params: CompleteParams) -> Body:
    """Complete an argument of a prompt or a variable of a template."""
    ref = params.ref
    is_prompt = ref.type == "ref/prompt"
    subject = ref.name if is_prompt else ref.uri
    # A template may be offered without a completer, and its URI is not checked: the list is then empty.
    if subject is None or (is_prompt and subject not in dispatcher.bridge.prompts):
        reference = f"{quote(ref.type)} '{quote(subject or '')}'"
        raise ProtocolError(INVALID_PARAMS, f"There is nothing to complete for {reference}")
    completer = dispatcher.bridge.completers.get((subject, params.argument.name))
    values: list[str] = []
    if completer is not None:
        bridge = (dispatcher.bridge.prompts.get(subject) or dispatcher.bridge.templates[subject]).bridge
        await dispatcher.switch_bridge(context, bridge).wait_until_entered()
        completed: Any = await settle(completer(params.argument.value, params.context.arguments, context))
        if not isinstance(completed, list | tuple) or not all(isinstance(one, str) for one in completed):
            raise InvalidResult(f"The completer of {params.argument.name}", "expected a list of str")
        values = list(completed)
    completion = {
        "values": values[:MAX_COMPLETIONS],
        "total": len(values),
        "hasMore": len(values) > MAX_COMPLETIONS,
    }
    return jsonrpc.encode({"completion": completion}), None
