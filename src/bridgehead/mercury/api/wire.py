"""Wire: the shapes of the Mercury API as it answers, read tolerantly.

Both forms of `usage` are accepted, a field that is not known is passed over, one that may be missing is.
Nothing here does I/O; what a shape means is decided by who reads it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, json

CHAT = "/chat/completions"
FIM = "/fim/completions"
EDIT = "/edit/completions"
MODELS = "/models"

_STREAMED = b',"stream":true,"stream_options":{"include_usage":true}}'


class TokenDetails(Struct):
    """How tokens divide, in the newer form of `usage`."""

    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class ApiUsage(Struct):
    """What a request used, in the older form (flat) or the newer one (details)."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    completion_tokens_details: TokenDetails | None = None
    prompt_tokens_details: TokenDetails | None = None


class FunctionCall(Struct):
    """The function that the model wants to be called."""

    name: str = ""
    arguments: str = ""


class ToolCall(Struct):
    """A call of a tool that the model asks for."""

    id: str = ""
    function: FunctionCall | None = None
    type: str = "function"


class Message(Struct):
    """What the model says, as a text or in parts."""

    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[ToolCall] | None = None

    @property
    def text(self) -> str:
        """The text of it."""
        if isinstance(self.content, list):
            return "".join(str(part.get("text", "")) for part in self.content)
        return self.content or ""


class Choice(Struct):
    """One answer: of a chat or an edit (a message), or of a fill-in (a text)."""

    message: Message | None = None
    text: str | None = None
    finish_reason: str | None = None


class ApiError(Struct):
    """What the API says when it refuses."""

    message: str = ""
    type: str | None = None
    param: str | None = None
    code: str | int | None = None


class Completion(Struct):
    """A whole answer."""

    choices: list[Choice] | None = None
    model: str = ""
    usage: ApiUsage | None = None
    warning: str | list[str] | None = None
    error: ApiError | None = None


class FunctionDelta(Struct):
    """A piece of a function call."""

    name: str | None = None
    arguments: str | None = None


class ToolCallDelta(Struct):
    """A piece of a tool call; its id comes with the first piece only."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class Delta(Struct):
    """What a chunk of a stream adds, or, while diffusing, what the text is now."""

    content: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


class ChunkChoice(Struct):
    """The part of a chunk that belongs to one answer."""

    delta: Delta | None = None
    finish_reason: str | None = None


class Chunk(Struct):
    """One event of a stream."""

    choices: list[ChunkChoice] | None = None
    model: str = ""
    usage: ApiUsage | None = None
    warning: str | list[str] | None = None
    error: ApiError | None = None


class Pricing(Struct):
    """Prices for one token, written as texts."""

    prompt: str | float | None = None
    completion: str | float | None = None
    input_cache_reads: str | float | None = None


class Model(Struct):
    """A model as the API lists it."""

    id: str
    owned_by: str | None = None
    created: int | float | None = None
    context_length: int | None = None
    max_output_length: int | None = None
    pricing: Pricing | None = None
    supported_features: list[str] | None = None
    supported_endpoints: list[str] | None = None


class ModelList(Struct):
    """The list of models."""

    data: list[Model]


class Refusal(Struct):
    """The body of an answer that is no success."""

    error: ApiError | str | None = None
    message: str | None = None


read_completion = json.Decoder(Completion).decode
read_chunk = json.Decoder(Chunk).decode
read_models = json.Decoder(ModelList).decode
read_refusal = json.Decoder(Refusal).decode
write = json.Encoder().encode


def streamed(body: bytes) -> bytes:
    """Give the same request as one whose answer is streamed, with what it used at its end."""
    return body[:-1] + _STREAMED


def warnings_of(warning: str | list[str] | None) -> list[str]:
    """Give the warnings of an answer as a list."""
    if not warning:
        return []
    return [warning] if isinstance(warning, str) else warning


def price(text: str | float | None) -> float | None:
    """Read a price; None where there is none that can be counted with."""
    try:
        value = -1.0 if text is None else float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def known(value: Any, otherwise: Any) -> Any:
    """Give the first of two values that is there."""
    return otherwise if value is None else value
