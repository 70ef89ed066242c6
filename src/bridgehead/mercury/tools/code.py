"""The code tools: `mercury_fim_completion` and `mercury_edit_completion`."""

from __future__ import annotations

from msgspec import UNSET

from bridgehead.mcp import Answer, Bridge, Context, Encoded

from ..api.wire import EDIT, FIM
from ..calling.service import Service
from ..completion import Completion
from .arguments import CompletionArguments, Edit, Fim
from .chat import complete_call

FIM_COMPLETION = "mercury_fim_completion"
EDIT_COMPLETION = "mercury_edit_completion"


def declare(bridge: Bridge[Service]) -> None:
    """Declare the code tools."""
    bridge.tool(
        "Fill in the code between a prompt (before the cursor) and a suffix (after it). Gives only the code "
        "for the gap. Ends at the first blank line unless `stop` says otherwise, and after 512 tokens unless "
        "`max_tokens` does.",
        name=FIM_COMPLETION,
        title="Mercury fill in the middle",
        read_only=True,
        open_world=True,
    )(fill_in)
    bridge.tool(
        "Let Mercury make the next edit to a piece of code, or apply an edit snippet to a whole file. The "
        "prompt has to carry the API's tags. Gives the edited code.",
        name=EDIT_COMPLETION,
        title="Mercury edit",
        read_only=True,
        open_world=True,
    )(edit)


async def fill_in(args: Fim, ctx: Context[Service]) -> Encoded | Answer[Completion]:
    """Fill a gap in code."""
    await _choose_model(args, "fim", ctx.state)
    return await _complete(FIM_COMPLETION, FIM, args, ctx)


async def edit(args: Edit, ctx: Context[Service]) -> Encoded | Answer[Completion]:
    """Make an edit."""
    await _choose_model(args, "edit", ctx.state)
    return await _complete(EDIT_COMPLETION, EDIT, args, ctx)


async def _choose_model(args: CompletionArguments, endpoint: str, service: Service) -> None:
    """Take the default model where none is named, or the first in the list that can do it."""
    if args.model is UNSET:
        await service.catalogue.load()
        settings = service.settings
        args.model = service.catalogue.choose(endpoint, settings.model, settings.allowed_models)


async def _complete(
    tool: str, path: str, args: CompletionArguments, ctx: Context[Service]
) -> Encoded | Answer[Completion]:
    service = ctx.state
    call = service.make_call(tool, path, args, ctx)
    now = service.clock.monotonic()
    cached = service.completer.lookup(call, ctx, now)
    return await complete_call(call, ctx) if cached is None else cached.to_answer(now, ctx.revision)
