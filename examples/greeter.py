"""A complete bridge: one tool, one resource, one prompt. Serve it with `python examples/greeter.py`."""

from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Arguments, Bridge, Context, stdio

bridge = Bridge(
    "greeter", "1.0.0", instructions="Use greet to greet people; greeter://languages lists languages."
)

GREETINGS = {"en": "Hello", "de": "Hallo", "fr": "Bonjour"}


class Greet(Arguments):
    name: Annotated[str, Meta(min_length=1, description="Who to greet")]
    language: Annotated[str, Meta(pattern="^(en|de|fr)$", description="Language code")] = "en"


class Greeting(Struct):
    greeting: str
    letters: int


@bridge.tool("Greet somebody by name. Answers with the greeting and its length.", read_only=True)
async def greet(args: Greet, ctx: Context[None]) -> Greeting:
    await ctx.progress(1, total=1, message=f"Thinking of {args.name}")
    greeting = f"{GREETINGS[args.language]}, {args.name}!"
    return Greeting(greeting, len(greeting))


@bridge.resource("greeter://languages", name="Languages", mime_type="text/plain")
def languages(_ctx: Context[None]) -> str:
    return "\n".join(GREETINGS)


if __name__ == "__main__":
    raise SystemExit(stdio.run(bridge))
