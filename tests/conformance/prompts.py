"""Prompts: owns the fixtures that are listed, filled in and completed."""

from typing import Annotated

from msgspec import Meta

from bridgehead.mcp import Arguments, Context, Embedded, Image, NoArguments, PromptMessage, Text, TextResource
from tests.conformance.bridge import bridge
from tests.conformance.input_tools import form
from tests.conformance.media import PNG_BASE64


@bridge.prompt("Takes no arguments.")
def test_simple_prompt(args: NoArguments, ctx: Context[None]) -> str:
    return "This is a simple prompt for testing."


class Two(Arguments):
    arg1: Annotated[str, Meta(description="First test argument")]
    arg2: Annotated[str, Meta(description="Second test argument")]


@bridge.prompt("Takes two arguments.")
def test_prompt_with_arguments(args: Two, ctx: Context[None]) -> str:
    return f"Prompt with arguments: arg1='{args.arg1}', arg2='{args.arg2}'"


@bridge.complete_prompt("test_prompt_with_arguments", "arg1")
def complete_first(value: str, given: dict[str, str], ctx: Context[None]) -> list[str]:
    return [word for word in ("test", "testing") if word.startswith(value)]


class Resource(Arguments, rename="camel"):
    resource_uri: Annotated[str, Meta(description="URI of the resource to embed")]


@bridge.prompt("Carries a resource.")
def test_prompt_with_embedded_resource(args: Resource, ctx: Context[None]) -> list[PromptMessage]:
    resource = TextResource(
        uri=args.resource_uri, mime_type="text/plain", text="Embedded resource content for testing."
    )
    question = Text("Please process the embedded resource above.")
    return [PromptMessage("user", Embedded(resource)), PromptMessage("user", question)]


@bridge.prompt("Carries an image.")
def test_prompt_with_image(args: NoArguments, ctx: Context[None]) -> list[PromptMessage]:
    question = Text("Please analyze the image above.")
    return [PromptMessage("user", Image(PNG_BASE64, "image/png")), PromptMessage("user", question)]


@bridge.prompt("Asks the user for its context first.")
async def test_input_required_result_prompt(args: NoArguments, ctx: Context[None]) -> str:
    answer = await ctx.elicit("What context should the prompt use?", form("context"), key="user_context")
    return f"Answer in this context: {answer.content['context']}"
