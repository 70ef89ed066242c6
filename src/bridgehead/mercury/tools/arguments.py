"""Arguments of the completion tools. Strict; a field that is not set is not sent.

The fields are the API's, so the arguments become the request's body, without the few that are for this server
(`cache`, `timeout_ms`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Arguments, Bridge

LONGEST_TIMEOUT_MS = 3_600_000
GRACE_SECONDS = 5.0
"""How long a completion may run before it becomes a task, for clients that accept tasks."""
BATCH_GRACE_SECONDS = 2.0
"""The same for batches, which take longer than most clients wait."""

Handler = TypeVar("Handler", bound=Callable[..., Any])

Model = Annotated[str, Meta(min_length=1, description="See mercury_list_models")]
Temperature = Annotated[float, Meta(ge=0, le=2)]
MaxTokens = Annotated[int, Meta(ge=1)]
Stop = list[str]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Probability = Annotated[float, Meta(ge=0, le=1)]
CacheUse = Annotated[
    Literal["use", "bypass", "refresh"],
    Meta(description="refresh: ask anew and keep the answer; bypass: no cache at all"),
]
Timeout = Annotated[
    int, Meta(ge=1, le=LONGEST_TIMEOUT_MS, description="For the whole call, retries included")
]


def completion_tool(
    bridge: Bridge[Any],
    description: str,
    *,
    name: str,
    title: str,
    model: str,
    grace_seconds: float = GRACE_SECONDS,
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
        defaults={"model": model},
        task="optional",
        task_grace_seconds=grace_seconds,
        **options,
    )


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
    """The one tool that has to be called."""

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
    Meta(min_length=1, max_length=50, description="Added to the prompt; relative to your roots"),
]


class ChatOptions(CompletionArguments):
    """Options of a chat."""

    top_p: Probability | UnsetType = UNSET
    frequency_penalty: Penalty | UnsetType = UNSET
    presence_penalty: Penalty | UnsetType = UNSET
    stop: Stop | UnsetType = UNSET
    user: str | UnsetType = UNSET
    max_completion_tokens: (
        Annotated[int, Meta(ge=1, description="Instead of max_tokens; counts reasoning too")] | UnsetType
    ) = UNSET
    reasoning_effort: Literal["instant", "low", "medium", "high"] | UnsetType = UNSET
    response_format: (
        Annotated[ResponseFormat, Meta(description="The answer is checked against it")] | UnsetType
    ) = UNSET
    seed: int | UnsetType = UNSET
    files: Files | UnsetType = UNSET


class Chat(ChatOptions, kw_only=True):
    """A conversation to continue."""

    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    tools: Annotated[list[OfferedTool], Meta(description="Functions that the model may call")] | UnsetType = (
        UNSET
    )
    tool_choice: Literal["auto", "required", "none"] | NamedTool | UnsetType = UNSET
    diffusing: (
        Annotated[bool, Meta(description="Stream each refined state of the whole text")] | UnsetType
    ) = UNSET


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
