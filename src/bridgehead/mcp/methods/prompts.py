"""`prompts/get` and `completion/complete`: a prompt's messages, and the values an argument may have."""

from __future__ import annotations

from typing import Any

from .. import jsonrpc
from ..calls.call_hook import Invocation
from ..calls.context import Context
from ..calls.params import CompleteParams, GetPromptParams
from ..errors import INVALID_PARAMS, ProtocolError
from ..features.handlers import settle
from ..features.prompts import PromptResult
from ..server import Body, Server

MOST_COMPLETIONS = 100


async def get_prompt(server: Server, context: Context[Any], params: GetPromptParams) -> Body:
    """Make a prompt's messages."""
    prompt = server.bridge.prompts.get(params.name)
    if prompt is None:
        known = list(server.bridge.prompts)
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {params.name}", {"prompts": known})
    lifespan = server.enter_home(context, prompt.home)
    call = Invocation("prompt", prompt.name, context)

    async def run() -> PromptResult:
        call.arguments = prompt.arguments(params.arguments)
        server.multi_round.resume(context, params, params.name, params.arguments)
        await lifespan.entered()
        return await prompt.messages(call.arguments, context)

    hook = prompt.home.call_hook
    return jsonrpc.encode(await (run() if hook is None else settle(hook(call, run)))), None


async def complete(server: Server, context: Context[Any], params: CompleteParams) -> Body:
    """Complete an argument of a prompt or a variable of a template."""
    subject = _completed_subject(server, params)
    completer = server.bridge.completers.get((subject, params.argument.name))
    values: list[str] = []
    if completer is not None:
        home = (server.bridge.prompts.get(subject) or server.bridge.templates[subject]).home
        await server.enter_home(context, home).entered()
        values = await settle(completer(params.argument.value, params.context.arguments, context))
    completion = {
        "values": values[:MOST_COMPLETIONS],
        "total": len(values),
        "hasMore": len(values) > MOST_COMPLETIONS,
    }
    return jsonrpc.encode({"completion": completion}), None


def _completed_subject(server: Server, params: CompleteParams) -> str:
    ref = params.ref
    subject, known = (ref.name, server.bridge.prompts) if ref.type == "ref/prompt" else (ref.uri, None)
    if subject is not None and (known is None or subject in known):
        return subject
    raise ProtocolError(INVALID_PARAMS, f"There is nothing to complete for {ref.type} {subject!r}")
