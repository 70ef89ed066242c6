"""Tools that say something while they work: owns the fixtures for progress, logs, streams and changes."""

import asyncio

from bridgehead.mcp import Context, NoArguments
from tests.conformance.bridge import bridge

PAUSE = 0.05


@bridge.tool("Sends three log messages.", read_only=True)
async def test_tool_with_logging(args: NoArguments, ctx: Context[None]) -> str:
    await ctx.log("info", "Tool execution started")
    await asyncio.sleep(PAUSE)
    await ctx.log("info", "Tool processing data")
    await asyncio.sleep(PAUSE)
    await ctx.log("info", "Tool execution completed")
    return "Logged three messages."


@bridge.tool("Logs only for a request that set a level.", read_only=True)
async def test_logging_tool(args: NoArguments, ctx: Context[None]) -> str:
    await ctx.log("info", "Logging evaluated")
    return "Logging evaluated."


@bridge.tool("Reports progress three times.", read_only=True)
async def test_tool_with_progress(args: NoArguments, ctx: Context[None]) -> str:
    for done in (0, 50, 100):
        await ctx.progress(done, total=100, message=f"Completed step {done} of 100")
        await asyncio.sleep(PAUSE)
    return f"Reported under {ctx.progress_token}."


@bridge.tool("Closes its stream and answers to the client that comes back.", read_only=True)
async def test_reconnection(args: NoArguments, ctx: Context[None]) -> str:
    await ctx.close_stream()
    await asyncio.sleep(2 * PAUSE)
    return "You came back for this."


@bridge.tool("Announces that the list of tools changed.")
def test_trigger_tool_change(args: NoArguments, ctx: Context[None]) -> str:
    bridge.changed.tools()
    return "Announced."


@bridge.tool("Announces that the list of prompts changed.")
def test_trigger_prompt_change(args: NoArguments, ctx: Context[None]) -> str:
    bridge.changed.prompts()
    return "Announced."
