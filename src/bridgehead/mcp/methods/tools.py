"""`tools/call`: the way a call takes to its tool's handler and back."""

from __future__ import annotations

from collections.abc import Coroutine
from types import CoroutineType
from typing import Any

from ..calls.call_hook import Invocation
from ..calls.context import Context
from ..calls.params import CallToolParams
from ..features.tools import (
    Encoded,
    InvalidArguments,
    Returned,
    Tool,
    encode_result,
    unknown_tool,
)
from ..lifespan import Lifespan
from ..server import Body, EventualBody, Server


def call_tool(server: Server, context: Context[Any], params: CallToolParams) -> EventualBody:
    """Call a tool. A plain function answers at once, or hands back the coroutine that will."""
    tool = server.bridge.tools.get(params.name)
    if tool is None:
        raise unknown_tool(params.name, list(server.bridge.tools))
    lifespan = server.enter_home(context, tool.home)
    context.arguments = params.arguments
    hook = tool.home.call_hook
    if hook is None:  # the usual case, which is why nothing is made for a hook before this is known
        returned = _run_tool(server, lifespan, context, tool, params)
    else:
        call = Invocation("tool", tool.name, context)
        returned = hook(call, lambda: _run_tool(server, lifespan, context, tool, params, call))
    if isinstance(returned, CoroutineType):
        return _encode_later(context, returned)
    return encode_result(returned, context.revision)


def _run_tool(
    server: Server,
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
    server.multi_round.resume(context, params, params.name, params.arguments)
    if lifespan.ready:
        return tool.handler(arguments, context)
    return _run_when_ready(lifespan, context, tool, arguments)


async def _run_when_ready(lifespan: Lifespan, context: Context[Any], tool: Tool, arguments: Any) -> Any:
    await lifespan.entered()
    returned: Any = tool.handler(arguments, context)
    return await returned if isinstance(returned, CoroutineType) else returned


async def _encode_later(context: Context[Any], work: Coroutine[Any, Any, Returned]) -> Body:
    return encode_result(await work, context.revision)
