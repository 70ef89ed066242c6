"""Puzzles: the tool and the resources for a day's instructions and input."""

from __future__ import annotations

from bridgehead.mcp import Arguments, Bridge, Context, ResourceItem
from bridgehead.runtime.errors import BridgeError, NotFound

from ..errors import CONTRACT_REVISION, not_loaded
from ..files import instructions, layout
from ..files.layout import Day
from ..workspace import Workspace

TEXT = "text/plain"


class FetchInstruction(Arguments):
    """Arguments of `fetch_instruction`."""

    day: Day


DESCRIPTION = "Fetch the full puzzle instruction for a specific day"
FETCH_SCHEMA = {
    "type": "object",
    "properties": {"day": {"type": "integer", "description": "Day number (1-25)"}},
    "required": ["day"],
}
"""The contract's schema, for clients of its revision; arguments are checked against `FetchInstruction`."""
# Clients that make up arguments to try a tool need the bound: Pydantic AI would ask for day 0.
_LISTED_SCHEMA = {
    **FETCH_SCHEMA,
    "properties": {"day": {"type": "integer", "minimum": 1, "description": "Day number (1-25)"}},
}


def declare(bridge: Bridge[Workspace], year: int) -> None:
    """Declare the tool and the resources."""
    bridge.tool(
        f"{DESCRIPTION}. Its input: aoc://dayNN/input. start_attempt returns both.",
        title="Fetch puzzle",
        contract_description=DESCRIPTION,
        input_schema=_LISTED_SCHEMA,
        read_only=True,
        idempotent=True,
        open_world=False,
        contract_schema=FETCH_SCHEMA,
    )(fetch_instruction)
    bridge.resource_list(list_resources)
    bridge.template(
        layout.INPUT_TEMPLATE,
        name="Day Input",
        description=f"Puzzle input of a day of Advent of Code {year}, 01 to 25",
        mime_type=TEXT,
    )(read_input)
    bridge.template(
        layout.URI_TEMPLATE,
        name="Day Instructions",
        description=f"Full puzzle instructions for a day of Advent of Code {year}, 01 to 25",
        mime_type=TEXT,
    )(read_day)
    bridge.complete_template(layout.URI_TEMPLATE, "day")(complete_day_number)
    bridge.complete_template(layout.INPUT_TEMPLATE, "day")(complete_input_number)


async def fetch_instruction(args: FetchInstruction, ctx: Context[Workspace]) -> str:
    """Return the puzzle of a day."""
    instruction = ctx.state.instruction(args.day)
    return await _hand_out(
        ctx, args.day, instruction.text, 1, *((2,) if instruction.phase2 is not None else ())
    )


async def _hand_out(ctx: Context[Workspace], day: int, text: str, *phases: int) -> str:
    """Return a text, and record that the caller got these phases: a later attempt is then only claimed."""
    workspace = ctx.state
    caller = workspace.caller_of(ctx)
    new = workspace.handouts.record(caller, day, *phases)
    # Over stdio, this process is the only one that serves the caller.
    if new and caller != workspace.process:
        await workspace.run_in_thread(workspace.store_handout, caller, day, new)
    return text


def list_resources(ctx: Context[Workspace]) -> list[ResourceItem]:
    """List the days that have a puzzle, newest first; for clients newer than the contract, inputs too."""
    year = ctx.state.year
    days = [
        ResourceItem(
            layout.day_uri(day),
            f"Day {day} Instructions",
            description=f"Full puzzle instructions for Advent of Code {year} Day {day}",
            mime_type=TEXT,
        )
        for day in ctx.state.days()
    ]
    # The contract's list has days only.
    if ctx.revision.name == CONTRACT_REVISION:
        return days
    return days + [
        ResourceItem(
            layout.input_uri(day),
            f"Day {day} Input",
            description=f"Puzzle input for Advent of Code {year} Day {day}",
            mime_type=TEXT,
        )
        for day in sorted(layout.list_inputs(ctx.state.folders.inputs), reverse=True)
    ]


async def read_day(variables: dict[str, str], ctx: Context[Workspace]) -> str:
    """Read the puzzle of the day that a URI names."""
    try:
        return await fetch_instruction(FetchInstruction(day=_parse_day(variables["day"])), ctx)
    except BridgeError as error:
        raise not_loaded(error) from error


async def read_input(variables: dict[str, str], ctx: Context[Workspace]) -> str:
    """Read the input of the day that a URI names."""
    try:
        day = _parse_day(variables["day"])
        text = instructions.read_input(ctx.state.folders.inputs, day)
    except BridgeError as error:
        raise not_loaded(error) from error
    # Both phases have the same input: a caller that begins the second has it anyway.
    return await _hand_out(ctx, day, text, 1)


def _parse_day(number: str) -> int:
    day = layout.parse_day(number)
    if day is None:
        raise NotFound(
            f"There is no day {number!r}.", next_step="Days are aoc://day01 to aoc://day25, with two digits."
        )
    return day


def complete_day_number(value: str, arguments: dict[str, str], ctx: Context[Workspace]) -> list[str]:
    """Complete the number in a URI, for days that have a puzzle."""
    return _complete(value, ctx.state.days())


def complete_input_number(value: str, arguments: dict[str, str], ctx: Context[Workspace]) -> list[str]:
    """Complete the number in a URI, for days that have an input."""
    return _complete(value, list(layout.list_inputs(ctx.state.folders.inputs)))


def _complete(value: str, days: list[int]) -> list[str]:
    numbers = (layout.two_digits(day) for day in sorted(days))
    return [number for number in numbers if number.startswith(value)]
