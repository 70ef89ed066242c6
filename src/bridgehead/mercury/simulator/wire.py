"""Wire: the requests of the simulated API.

Unknown fields are ignored, as the real service does.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

Tokens = Annotated[int, Meta(ge=1)]
Temperature = Annotated[float, Meta(ge=0, le=2)]
Share = Annotated[float, Meta(ge=0, le=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]


class Message(Struct):
    """One message of a conversation."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text parts of the content."""
        if isinstance(self.content, str):
            return self.content
        return "".join(str(part.get("text", "")) for part in self.content or ())


class Function(Struct):
    """A function that the model may call."""

    name: str
    parameters: dict[str, Any] = {}


class Tool(Struct):
    """A tool that the model may use."""

    function: Function


class Named(Struct):
    """A function by its name."""

    name: str


class NamedTool(Struct):
    """The choice of one tool."""

    function: Named


class Shape(Struct):
    """The JSON Schema that the answer must follow."""

    name: str
    schema: dict[str, Any] = {}


class ResponseFormat(Struct):
    """The required form of an answer."""

    type: str
    json_schema: Shape | None = None


class StreamOptions(Struct):
    """How to stream."""

    include_usage: bool = False


class CompletionRequest(Struct):
    """Fields of every completion request."""

    model: str
    max_tokens: Tokens | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    stop: str | list[str] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether the stream ends with the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


class ChatRequest(CompletionRequest, kw_only=True):
    """POST /chat/completions."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    max_completion_tokens: Tokens | None = None
    seed: int | None = None
    diffusing: bool = False
    reasoning_effort: str | None = None
    reasoning_summary: bool = False
    response_format: ResponseFormat | None = None
    tools: list[Tool] = []
    tool_choice: str | NamedTool | None = None


class FimRequest(CompletionRequest, kw_only=True):
    """POST /fim/completions."""

    prompt: str
    suffix: str = ""


class EditRequest(CompletionRequest, kw_only=True):
    """POST /edit/completions."""

    messages: list[Message]
