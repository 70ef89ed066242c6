"""The code tools: `mercury_fim_completion` and `mercury_edit_completion`."""

from __future__ import annotations

from bridgehead.mcp import Answer, Bridge, Context, Encoded

from ..api.wire import EDIT, FIM
from ..arguments import CompletionArguments, Edit, Fim, completion_tool
from ..calling.service import Service
from ..completion import Completion
from ..errors import MercuryError
from ..settings import MercurySettings
from .chat import complete_call

FIM_COMPLETION = "mercury_fim_completion"
EDIT_COMPLETION = "mercury_edit_completion"


def declare(bridge: Bridge[Service], settings: MercurySettings) -> None:
    """Declare the code tools."""
    completion_tool(
        bridge,
        "Fill in the code between a prompt (before the cursor) and a suffix (after it). Gives only the code "
        "for the gap. Ends at the first blank line unless `stop` says otherwise, and after 512 tokens unless "
        "`max_tokens` does.",
        name=FIM_COMPLETION,
        title="Mercury fill in the middle",
        settings=settings,
        model=settings.fim_model,
    )(fill_in)
    completion_tool(
        bridge,
        "Edit code with a prompt that carries the API's own tags. mercury_apply_edit and mercury_next_edit "
        "write these for you. Gives the edited code.",
        name=EDIT_COMPLETION,
        title="Mercury edit",
        settings=settings,
        model=settings.edit_model,
    )(edit)


async def fill_in(args: Fim, ctx: Context[Service]) -> Encoded | Answer[Completion]:
    """Fill a gap in code."""
    return await complete_code(FIM_COMPLETION, FIM, args, ctx)


async def edit(args: Edit, ctx: Context[Service]) -> Encoded | Answer[Completion]:
    """Make an edit."""
    return await complete_code(EDIT_COMPLETION, EDIT, args, ctx)


async def complete_code(
    tool: str, path: str, args: CompletionArguments, ctx: Context[Service]
) -> Encoded | Answer[Completion]:
    """Ask the endpoint `path` (FIM or EDIT); raises if an edit is incomplete."""
    completion = await complete_call(ctx.state.make_call(tool, path, args, ctx), ctx)
    if path == EDIT and not completion.is_whole:
        # An agent that overlooks the cut would overwrite the original with half of it.
        message = f"The edit was cut short ({completion.metadata.finish_reason})."
        raise MercuryError("EDIT_INCOMPLETE", message, content=completion.content)
    return completion.to_result(ctx.revision)
