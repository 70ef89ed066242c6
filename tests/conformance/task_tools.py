"""Tools that become tasks: owns the fixtures of the tasks extension."""

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import INTERNAL_ERROR, Arguments, Context, NoArguments, ProtocolError, ToolError
from bridgehead.mcp import elicitation as form
from tests.conformance.bridge import bridge

MOMENT = 0.2
"""Seconds of work, long enough to be seen working."""


class Name(Arguments):
    name: Annotated[str, Meta(description="Who is greeted.")]


@bridge.tool("Greets somebody, at once.", read_only=True)
def greet(args: Name, ctx: Context[None]) -> str:
    return f"Hello, {args.name}!"


class Computation(Arguments):
    seconds: Annotated[float, Meta(ge=0, description="How long it takes.")]
    label: Annotated[str, Meta(description="What it is called in the answer.")] = "computation"


@bridge.tool("Computes for a while.", read_only=True, task="optional")
async def slow_compute(args: Computation, ctx: Context[None]) -> str:
    await asyncio.sleep(args.seconds)
    return f"{args.label}: computed for {args.seconds:g} s"


@bridge.tool("Fails after a moment.", read_only=True, task="required", task_grace_seconds=0)
async def failing_job(args: NoArguments, ctx: Context[None]) -> str:
    await asyncio.sleep(MOMENT)
    raise ToolError("The job failed, as it always does.")


@bridge.tool("Ends with an error of the protocol.", read_only=True, task="required", task_grace_seconds=0)
async def protocol_error_job(args: NoArguments, ctx: Context[None]) -> str:
    await asyncio.sleep(MOMENT)
    raise ProtocolError(INTERNAL_ERROR, "The job cannot be done.")


class File(Arguments):
    filename: Annotated[str, Meta(description="What is to be deleted.")]


class Confirmation(Struct):
    confirm: Annotated[bool, Meta(description="Whether to delete it.")]


@bridge.tool("Deletes a file when asked twice.", task="required", task_grace_seconds=0)
async def confirm_delete(args: File, ctx: Context[None]) -> str:
    answer = await ctx.elicit(f"Delete {args.filename}?", Confirmation, key="confirm")
    is_confirmed = answer.accepted and answer.content.confirm
    return f"Deleted {args.filename}" if is_confirmed else f"Kept {args.filename}"


WORD = {"type": "object", "properties": {"value": {"type": "string", "description": "Any word."}}}


@bridge.tool("Asks two things at once.", read_only=True, task="required", task_grace_seconds=0)
async def multi_input(args: NoArguments, ctx: Context[None]) -> str:
    answers = await ctx.ask({"first": form("The first word?", WORD), "second": form("The second?", WORD)})
    return " and ".join(answer.action for answer in answers.values())


class Person(Struct):
    name: Annotated[str, Meta(description="Your name.")]


@bridge.tool("Asks for a name, then works.", read_only=True, task="required", task_grace_seconds=60)
async def test_tool_with_task(args: NoArguments, ctx: Context[None]) -> str:
    answer = await ctx.elicit("What is your name?", Person, key="name")
    await ctx.detach()
    await asyncio.sleep(MOMENT)
    return f"Hello, {answer.content.name}!" if answer.accepted else "Hello, whoever you are!"
