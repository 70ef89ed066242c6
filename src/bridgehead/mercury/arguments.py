"""Arguments of the completion tools. Strict; a field that is not set is not sent.

The fields are the API's, so the arguments become the request's body, without the few that are for this server
(`cache`, `timeout_ms`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Arguments, Bridge

from .settings import MercurySettings

LONGEST_TIMEOUT_MS = 3_600_000
GRACE_SECONDS = 5.0
"""How long a completion may run before it becomes a task, for clients that accept tasks."""
BATCH_GRACE_SECONDS = 2.0
"""The same for batches, which take longer than most clients wait."""

Handler = TypeVar("Handler", bound=Callable[..., Any])

Model = Annotated[str, Meta(min_length=1, description="See mercury_list_models")]
# Limits are in words as well: some clients drop minimum, maximum and default before a model sees them.
Temperature = Annotated[float, Meta(ge=0, le=2, description="0 to 2")]
MaxTokens = Annotated[int, Meta(ge=1)]
Stop = list[str]
Penalty = Annotated[float, Meta(ge=-2, le=2, description="-2 to 2")]
Probability = Annotated[float, Meta(ge=0, le=1, description="0 to 1")]
CacheUse = Literal["use", "bypass", "refresh"]
Timeout = Annotated[int, Meta(ge=1, le=LONGEST_TIMEOUT_MS, description="At most an hour")]


def completion_tool(
    bridge: Bridge[Any],
    description: str,
    *,
    name: str,
    title: str,
    settings: MercurySettings,
    model: str = "",
    grace_seconds: float = GRACE_SECONDS,
    input_schema: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    **options: Any,
) -> Callable[[Handler], Handler]:
    """Declare a tool that calls a model: it changes nothing, costs money, and may become a task."""
    return bridge.tool(
        description,
        name=name,
        title=title,
        read_only=True,
        paid=True,
        open_world=True,
        input_schema=input_schema or partial(shorten, with_files=settings.files),
        defaults={"model": model or settings.model},
        task="optional",
        task_grace_seconds=grace_seconds,
        **options,
    )


_LISTED_LIMITS = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "max_tokens")
"""Fields whose limits stay in the listed schema, because the contract lists them."""
STREAM_LISTED = (
    *("messages", "model", "temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty"),
    *("stop", "user", "diffusing"),
)
"""Listed arguments of the stream: the contract's and its own. It also accepts a chat's, as its description
says."""
_LIMITS = ("minimum", "maximum", "minLength", "minItems", "maxItems")
_OUTLINES: dict[str, dict[str, Any]] = {
    "tools": {
        "type": "array",
        "items": {"type": "object"},
        "description": "Functions it may call, in OpenAI's form",
    },
    "tool_calls": {"type": "array", "items": {"type": "object"}, "description": "As they came"},
    "tool_choice": {"type": "string", "description": "auto, none, required, or a function's name"},
    "response_format": {
        "type": "object",
        "description": "OpenAI's json_object or json_schema; the answer is checked",
    },
}
"""Listed schemas of OpenAI's nested arguments: in full they take half of the tool list, and every model knows
them."""


def shorten(schema: dict[str, Any], *, with_files: bool) -> dict[str, Any]:
    """Shorten the generated schema of a tool, which every conversation carries; calls are checked in full.

    Files are listed only where the server reads them.
    """
    if "properties" not in schema:
        return (
            {**schema, "items": shorten(schema["items"], with_files=with_files)}
            if "items" in schema
            else schema
        )
    properties = {}
    for name, declared in schema["properties"].items():
        if name in ("files", "file") and not with_files:
            continue
        listed = _OUTLINES.get(name) or shorten(declared, with_files=with_files)
        dropped = () if name in _LISTED_LIMITS else _LIMITS
        properties[name] = {word: value for word, value in listed.items() if word not in dropped}
    return {**schema, "properties": properties}


def shorten_stream(schema: dict[str, Any]) -> dict[str, Any]:
    """Shorten the schema of a stream, which is that of a chat, to `STREAM_LISTED`."""
    short = shorten(schema, with_files=False)
    message = short["properties"]["messages"]["items"]["properties"]
    short["properties"]["messages"]["items"]["properties"] = {
        name: message[name] for name in ("role", "content")
    }
    del short["additionalProperties"]  # unlisted arguments are accepted too
    return {**short, "properties": {name: short["properties"][name] for name in STREAM_LISTED}}


class Function(Struct, forbid_unknown_fields=True):
    """A function that the model called."""

    name: str
    arguments: str


class PriorToolCall(Struct, forbid_unknown_fields=True):
    """A tool call of an earlier answer."""

    id: str
    function: Function
    type: Literal["function"] = "function"


class ChatMessage(Struct, forbid_unknown_fields=True, omit_defaults=False):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: list[PriorToolCall] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


class FunctionTool(Struct, forbid_unknown_fields=True):
    """A function that the model may call."""

    name: Annotated[str, Meta(min_length=1)]
    description: str | UnsetType = UNSET
    parameters: Annotated[dict[str, Any], Meta(description="JSON Schema")] | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


class OfferedTool(Struct, forbid_unknown_fields=True):
    """A tool that the model may call."""

    function: FunctionTool
    type: Literal["function"] = "function"


class NamedFunction(Struct, forbid_unknown_fields=True):
    """The name of a function."""

    name: str


class NamedTool(Struct, forbid_unknown_fields=True):
    """The tool that the model must call."""

    function: NamedFunction
    type: Literal["function"] = "function"


class NamedSchema(Struct, forbid_unknown_fields=True):
    """A JSON Schema that the answer has to fit."""

    name: str
    schema: Annotated[dict[str, Any], Meta(description="JSON Schema")]
    description: str | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


class ResponseFormat(Struct, forbid_unknown_fields=True):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NamedSchema | UnsetType = UNSET


class CallArguments(Arguments):
    """Arguments of every call to a model."""

    model: Model | UnsetType = UNSET
    cache: CacheUse | UnsetType = UNSET
    timeout_ms: Timeout | UnsetType = UNSET

    def to_body(self) -> Any:
        """Return the body of the request."""
        return self


class CompletionArguments(CallArguments):
    """Arguments of every completion."""

    temperature: Temperature | UnsetType = UNSET
    max_tokens: MaxTokens | UnsetType = UNSET

    def to_message(self, content: str) -> Any:
        """Return the common options with one user message, the form of an edit request."""
        options = {name: getattr(self, name) for name in CompletionArguments.__struct_fields__}
        set_options = {name: value for name, value in options.items() if value is not UNSET}
        return {**set_options, "messages": [{"role": "user", "content": content}]}


Files = Annotated[
    list[str],
    Meta(min_length=1, max_length=50, description="At most 50 paths in your roots; added to the prompt"),
]


class ChatOptions(CompletionArguments):
    """Options of a chat."""

    top_p: Probability | UnsetType = UNSET
    frequency_penalty: Penalty | UnsetType = UNSET
    presence_penalty: Penalty | UnsetType = UNSET
    stop: Stop | UnsetType = UNSET
    user: str | UnsetType = UNSET
    max_completion_tokens: (
        Annotated[int, Meta(ge=1, description="Like max_tokens, reasoning included")] | UnsetType
    ) = UNSET
    reasoning_effort: Literal["instant", "low", "medium", "high"] | UnsetType = UNSET
    response_format: ResponseFormat | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    files: Files | UnsetType = UNSET


class Chat(ChatOptions, kw_only=True):
    """A conversation to continue."""

    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    tools: list[OfferedTool] | UnsetType = UNSET
    tool_choice: str | NamedTool | UnsetType = UNSET
    diffusing: bool | UnsetType = UNSET
    reasoning_summary: bool | UnsetType = UNSET
    reasoning_summary_wait: bool | UnsetType = UNSET
    realtime: Annotated[bool, Meta(description="First token sooner")] | UnsetType = UNSET


class Fim(CompletionArguments, kw_only=True):
    """A gap to fill."""

    prompt: Annotated[str, Meta(description="Code before the cursor")]
    suffix: Annotated[str, Meta(description="Code after the cursor")]
    stop: Stop | UnsetType = UNSET


class Edit(CompletionArguments, kw_only=True):
    """An edit to make."""

    prompt: Annotated[
        str,
        Meta(
            min_length=1,
            description="With the API's tags, such as <|code_to_edit|>",
        ),
    ]
    top_p: Probability | UnsetType = UNSET
    presence_penalty: Penalty | UnsetType = UNSET

    def to_body(self) -> Any:
        """Return the prompt as the one message that the API takes."""
        more = {"top_p": self.top_p, "presence_penalty": self.presence_penalty}
        return self.to_message(self.prompt) | {k: value for k, value in more.items() if value is not UNSET}
