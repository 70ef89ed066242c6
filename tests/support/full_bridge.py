"""A bridge that uses every optional field of the protocol: owns the most that a server can say.

Whatever a revision does not define must be missing from what its client sees of this bridge.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from bridgehead.mcp import (
    Annotations,
    Answer,
    Arguments,
    Audio,
    BlobResource,
    Bridge,
    CallResult,
    Content,
    Context,
    Embedded,
    Icon,
    Image,
    Link,
    NoArguments,
    PromptMessage,
    ResourceItem,
    SamplingMessage,
    Text,
    TextResource,
)

ICONS = (Icon("https://a.example/i.png", "image/png", ("48x48",), "dark"),)
META: dict[str, Any] = {"a.example/meta": {"icons": 1}}
NOTES = Annotations(("user", "assistant"), 0.5, "2025-01-01T00:00:00Z")
TEXT = TextResource(uri="full://text", mime_type="text/plain", text="text", meta=META)
BLOB = BlobResource(uri="full://blob", mime_type="image/png", blob="AAAA", meta=META)
BLOCKS: list[Content] = [
    Text("text", NOTES, META),
    Image("AAAA", "image/png", NOTES, META),
    Audio("AAAA", "audio/wav", NOTES, META),
    Embedded(TEXT, NOTES, META),
    Embedded(BLOB, NOTES, META),
    Link("full://link", "link", "Link", "A link.", "text/plain", 5, NOTES, ICONS, META),
]


class Given(Arguments):
    word: Annotated[str, Meta(description="Any word.")]


class Made(Struct):
    title: str
    icons: list[str]


def make_bridge() -> Bridge[None]:
    bridge: Bridge[None] = Bridge(
        "full",
        "1",
        title="Full",
        description="Uses everything.",
        website_url="https://a.example/",
        icons=ICONS,
        instructions="Use everything.",
        changing={"tools", "prompts", "resources"},
        subscribable=True,
    )
    _add_tools(bridge)
    _add_resources(bridge)
    _add_prompts(bridge)
    return bridge


def _add_tools(bridge: Bridge[None]) -> None:
    @bridge.tool(
        "Make it.",
        title="Make",
        read_only=True,
        destructive=False,
        idempotent=True,
        open_world=False,
        icons=ICONS,
        meta=META,
    )
    async def make(args: Given, ctx: Context[None]) -> Answer[Made]:
        await ctx.log("info", {"icons": []}, logger="full")
        await ctx.progress(1, 2, "halfway")
        return Answer(args.word, Made("t", ["i"]), META)

    @bridge.tool("Give every block.", task="optional")
    def blocks(args: NoArguments, ctx: Context[None]) -> list[Content]:
        return BLOCKS

    @bridge.tool("Fail with all that there is.")
    def fail(args: NoArguments, ctx: Context[None]) -> list[Content]:
        return CallResult(BLOCKS, {"why": 1}, is_error=True, meta=META)  # type: ignore[return-value]

    @bridge.tool("Ask the model with every block.")
    async def think(args: NoArguments, ctx: Context[None]) -> str:
        messages = [
            SamplingMessage("user", block) for block in BLOCKS if isinstance(block, Text | Image | Audio)
        ]
        messages.append(SamplingMessage("user", (Text("a", NOTES, META), Image("AAAA", "image/png"))))
        return (await ctx.sample(messages, max_tokens=5)).text


def _add_resources(bridge: Bridge[None]) -> None:
    @bridge.resource(
        "full://text",
        name="text",
        title="Text",
        description="Text.",
        mime_type="text/plain",
        size=4,
        icons=ICONS,
    )
    def text(ctx: Context[None]) -> list[TextResource | BlobResource]:
        return [TEXT, BLOB]

    @bridge.resource_list
    def more(ctx: Context[None]) -> list[ResourceItem]:
        return [ResourceItem("full://more", "more", "More", "More.", "text/plain", NOTES, 4, ICONS, META)]

    @bridge.template(
        "full://word/{word}",
        name="word",
        title="Word",
        description="A word.",
        mime_type="text/plain",
        icons=ICONS,
    )
    def word(variables: dict[str, str], ctx: Context[None]) -> str:
        return variables["word"]


def _add_prompts(bridge: Bridge[None]) -> None:
    @bridge.prompt("Say it.", title="Say", icons=ICONS)
    def say(args: Given, ctx: Context[None]) -> list[PromptMessage]:
        return [PromptMessage("user", block) for block in BLOCKS]

    @bridge.complete_prompt("say", "word")
    def complete(value: str, given: dict[str, str], ctx: Context[None]) -> list[str]:
        return [value]
