"""Tools that ask the client a question in the handshake era: owns those fixtures and the forms they show."""

import json
from typing import Annotated, Any

from msgspec import Meta

from bridgehead.mcp import Arguments, Context, Elicited, NoArguments, SamplingMessage, Text
from tests.conformance.bridge import bridge

Form = dict[str, Any]

USER_FORM: Form = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}

DEFAULTS_FORM: Form = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}

OPTIONS = ["option1", "option2", "option3"]
TITLED = [
    {"const": "value1", "title": "First Option"},
    {"const": "value2", "title": "Second Option"},
    {"const": "value3", "title": "Third Option"},
]

ENUMS_FORM: Form = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    "required": [],
}


class Prompted(Arguments):
    prompt: Annotated[str, Meta(description="What to ask the client's model.")]


@bridge.tool("Asks the client's model.", read_only=True)
async def test_sampling(args: Prompted, ctx: Context[None]) -> str:
    sampled = await ctx.sample([SamplingMessage("user", Text(args.prompt))], max_tokens=100)
    return f"LLM response: {sampled.text}"


class Shown(Arguments):
    message: Annotated[str, Meta(description="What to show the user.")]


@bridge.tool("Asks the user to fill in a form.", read_only=True)
async def test_elicitation(args: Shown, ctx: Context[None]) -> str:
    return f"User response: {told(await ctx.elicit(args.message, USER_FORM))}"


@bridge.tool("Asks with a default in every field.", read_only=True)
async def test_elicitation_sep1034_defaults(args: NoArguments, ctx: Context[None]) -> str:
    answer = await ctx.elicit("Please review and update the form fields with defaults", DEFAULTS_FORM)
    return f"Elicitation completed: {told(answer)}"


@bridge.tool("Asks with every kind of choice.", read_only=True)
async def test_elicitation_sep1330_enums(args: NoArguments, ctx: Context[None]) -> str:
    answer = await ctx.elicit("Please select options from the enum fields", ENUMS_FORM)
    return f"Elicitation completed: {told(answer)}"


def told(answer: Elicited) -> str:
    return f"action={answer.action}, content={json.dumps(answer.content or {})}"
