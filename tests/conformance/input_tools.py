"""Tools that need input before they can answer, in the stateless era: owns those fixtures."""

from typing import Any

from bridgehead.mcp import (
    Context,
    InputRequest,
    NoArguments,
    SamplingMessage,
    Text,
    elicitation,
    list_roots,
    sampling,
)
from tests.conformance.bridge import bridge


def form(name: str, kind: str = "string") -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}


def said(text: str) -> list[SamplingMessage]:
    return [SamplingMessage("user", Text(text))]


@bridge.tool("Asks for a name.", read_only=True)
async def test_input_required_result_elicitation(args: NoArguments, ctx: Context[None]) -> str:
    answer = await ctx.elicit("What is your name?", form("name"), key="user_name")
    return f"Hello, {answer.content['name']}!" if answer.accepted else "Hello, whoever you are!"


@bridge.tool("Asks the client's model for a capital.", read_only=True)
async def test_input_required_result_sampling(args: NoArguments, ctx: Context[None]) -> str:
    question = said("What is the capital of France?")
    return (await ctx.sample(question, max_tokens=100, key="capital_question")).text


@bridge.tool("Asks which folders are open.", read_only=True)
async def test_input_required_result_list_roots(args: NoArguments, ctx: Context[None]) -> str:
    roots = await ctx.roots(key="client_roots")
    return f"Roots: {', '.join(root.uri for root in roots)}"


@bridge.tool("Asks for a confirmation and checks the state that comes back.", read_only=True)
async def test_input_required_result_request_state(args: NoArguments, ctx: Context[None]) -> str:
    await ctx.elicit("Please confirm", form("ok", "boolean"), key="confirm")
    return "state-ok"


@bridge.tool("Asks for a confirmation, and must refuse a state that was changed.", read_only=True)
async def test_input_required_result_tampered_state(args: NoArguments, ctx: Context[None]) -> str:
    await ctx.elicit("Please confirm", form("ok", "boolean"), key="confirm")
    return "integrity-ok"


@bridge.tool("Asks three questions at once.", read_only=True)
async def test_input_required_result_multiple_inputs(args: NoArguments, ctx: Context[None]) -> str:
    answers = await ctx.ask(
        {
            "user_name": elicitation("What is your name?", form("name")),
            "greeting": sampling(said("Generate a greeting"), max_tokens=50),
            "client_roots": list_roots(),
        }
    )
    return f"{answers['greeting'].text} ({len(answers['client_roots'])} roots)"


@bridge.tool("Asks two questions, one after the other.", read_only=True)
async def test_input_required_result_multi_round(args: NoArguments, ctx: Context[None]) -> str:
    name = await ctx.elicit("Step 1: What is your name?", form("name"), key="step1")
    color = await ctx.elicit("Step 2: What is your favorite color?", form("color"), key="step2")
    return f"{name.content['name']} likes {color.content['color']}."


@bridge.tool("Asks only what the client can answer.", read_only=True)
async def test_input_required_result_capabilities(args: NoArguments, ctx: Context[None]) -> str:
    questions: dict[str, InputRequest] = {
        "elicited": elicitation("Please give a value", form("value")),
        "sampled": sampling(said("Please say something"), max_tokens=50),
    }
    possible = {key: question for key, question in questions.items() if ctx.can_ask(question)}
    answers = await ctx.ask(possible)
    return f"Answered: {', '.join(sorted(answers))}"


@bridge.tool("Needs a client whose model can be asked.", read_only=True)
async def test_missing_capability(args: NoArguments, ctx: Context[None]) -> str:
    return (await ctx.sample(said("Say anything"), max_tokens=50)).text


@bridge.tool("Reports progress, then asks for a name.", read_only=True)
async def test_streaming_elicitation(args: NoArguments, ctx: Context[None]) -> str:
    await ctx.progress(50, total=100)
    answer = await ctx.elicit("What is your name?", form("name"), key="user_name")
    return f"User response: {answer.action}"
