"""A bridge whose tools ask the client, and a client that answers: owns both sides of every question.

The same tools run in both eras. In the handshake era `Person` answers requests; in the stateless one `solve`
answers `input_required` results and makes the call again, until it is complete.
"""

import asyncio
from typing import Annotated, Any

from msgspec import Meta, Struct

from bridgehead.mcp import (
    Arguments,
    Bridge,
    Context,
    NoArguments,
    SamplingMessage,
    Text,
    elicitation,
    elicitation_by_url,
    list_roots,
    sampling,
)
from tests.support.checked import CheckedClient

ALL: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "size": {"type": "number"},
        "sure": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    },
    "required": ["name"],
}


class Wish(Struct):
    color: Annotated[str, Meta(description="Which color.")]
    count: Annotated[int, Meta(ge=1, le=9)] = 1


class About(Arguments):
    subject: str = "you"


def user_message(text: str) -> list[SamplingMessage]:
    return [SamplingMessage("user", Text(text))]


def make_bridge() -> Bridge[None]:
    bridge: Bridge[None] = Bridge("asking", "1")
    _add_forms(bridge)
    _add_models_and_roots(bridge)
    _add_several(bridge)
    _add_others(bridge)
    return bridge


def _add_forms(bridge: Bridge[None]) -> None:
    @bridge.tool("Ask for a wish.")
    async def wish(args: NoArguments, ctx: Context[None]) -> str:
        answer = await ctx.elicit("What do you wish?", Wish)
        return f"{answer.content.count} {answer.content.color}" if answer.accepted else answer.action

    @bridge.tool("Ask by a schema.")
    async def form(args: About, ctx: Context[None]) -> str:
        answer = await ctx.elicit(f"About {args.subject}", FORM, key="form")
        return str(answer.content)

    @bridge.tool("Ask at an address.")
    async def visit(args: NoArguments, ctx: Context[None]) -> str:
        question = elicitation_by_url("Sign in", "https://a.example/sign-in", "e-1")
        return str((await ctx.ask({"visit": question}))["visit"].action)


def _add_models_and_roots(bridge: Bridge[None]) -> None:
    @bridge.tool("Ask the model.")
    async def think(args: NoArguments, ctx: Context[None]) -> str:
        sampled = await ctx.sample(
            user_message("Think."), max_tokens=5, systemPrompt="Be brief.", temperature=0.5
        )
        return f"{sampled.model} {sampled.role} {sampled.stop_reason}: {sampled.text}"

    @bridge.tool("Ask the model, with tools.")
    async def think_hard(args: NoArguments, ctx: Context[None]) -> str:
        tools = [{"name": "t", "inputSchema": {"type": "object"}}]
        return (await ctx.sample(user_message("Think."), max_tokens=5, tools=tools)).text

    @bridge.tool("Ask for the roots.")
    async def roots(args: NoArguments, ctx: Context[None]) -> str:
        return ", ".join(f"{root.uri} {root.name}" for root in await ctx.roots())


def _add_several(bridge: Bridge[None]) -> None:
    @bridge.tool("Ask three things at once.")
    async def everything(args: NoArguments, ctx: Context[None]) -> str:
        answers = await ctx.ask(
            {
                "a": elicitation("Wish?", Wish),
                "b": sampling(user_message("Think."), max_tokens=5),
                "c": list_roots(),
            }
        )
        return f"{answers['a'].content.color} {answers['b'].text} {len(answers['c'])}"

    @bridge.tool("Ask two things, each in a task of its own.")
    async def together(args: NoArguments, ctx: Context[None]) -> str:
        async with asyncio.TaskGroup() as group:
            one = group.create_task(ctx.elicit("One", Wish, key="one"))
            two = group.create_task(ctx.roots(key="two"))
        return f"{one.result().content.color} {len(two.result())}"

    @bridge.tool("Ask one thing after the other.")
    async def rounds(args: About, ctx: Context[None]) -> str:
        first = await ctx.elicit("One", Wish, key="one")
        second = await ctx.elicit(f"Two, after {first.content.color}", Wish, key="two")
        third = await ctx.roots(key="three")
        return f"{args.subject}: {first.content.color} {second.content.color} {len(third)}"

    @bridge.tool("Ask nothing at all.")
    async def nothing(args: NoArguments, ctx: Context[None]) -> str:
        return str(await ctx.ask({}))

    @bridge.tool("Ask only what can be asked.")
    async def possible(args: NoArguments, ctx: Context[None]) -> str:
        questions = {
            "a": elicitation("Wish?", Wish),
            "b": sampling(user_message("Think."), max_tokens=5),
            "c": list_roots(),
        }
        return " ".join(key for key, question in questions.items() if ctx.can_ask(question))


def _add_others(bridge: Bridge[None]) -> None:
    @bridge.prompt("Ask before it is made.")
    async def asking_prompt(args: NoArguments, ctx: Context[None]) -> str:
        return str((await ctx.elicit("Wish?", Wish)).content.color)

    @bridge.resource("asking://roots", name="roots")
    async def asking_resource(ctx: Context[None]) -> str:
        return str(len(await ctx.roots()))


class Person:
    """Answers every question, and remembers what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._answers = {
            "elicitation/create": {"action": "accept", "content": {"color": "red", "name": "Ada"}},
            "sampling/createMessage": {
                "role": "assistant",
                "model": "m-1",
                "content": {"type": "text", "text": "thought"},
                "stopReason": "endTurn",
            },
            "roots/list": {"roots": [{"uri": "file:///a", "name": "a"}, {"uri": "file:///b"}]},
            **{name.replace("_", "/", 1): answer for name, answer in answers.items()},
        }

    def __call__(self, method: str, params: Any) -> Any:
        self.asked.append((method, params))
        return self._answers[method]


async def solve(client: CheckedClient, method: str, params: dict[str, Any], person: Person) -> Any:
    """Make a request until it is complete, answering in between as a client of either era does."""
    result = await client.request(method, params)
    while result.get("resultType") == "input_required":
        responses = {
            key: person(question["method"], question.get("params"))
            for key, question in result["inputRequests"].items()
        }
        retry = {"inputResponses": responses, "requestState": result["requestState"]}
        result = await client.request(method, {**params, **retry})
    return result
