"""Wire: requests to the Mercury API, and its responses, decoded without secrets. Pure.

Both forms of `usage` are accepted, unknown fields are ignored, and nearly every field may be missing or null.
`tolerance` reads responses that these types refuse; `completions` decides what a response means for a call.

An API may echo the key that it was sent: in a refusal, a warning, an answer, a model's name. Secrets are
removed as soon as a response is read. Results, notifications, log lines and audit lines are made from
redacted data only, so none of them can show a key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from msgspec import DecodeError, Struct, json

from bridgehead.runtime import logs

CHAT = "/chat/completions"
FIM = "/fim/completions"
COMPLETIONS = "/completions"
"""With `suffix` it also fills gaps, on servers without `FIM`."""
EDIT = "/edit/completions"
DECISIONS = "/decisions"
EMBEDDINGS = "/embeddings"
MODELS = "/models"
VendorField = Literal[
    "diffusing", "reasoning_effort", "reasoning_summary", "reasoning_summary_wait", "realtime"
]
"""A field of a request that compatible servers may refuse."""
FIM_DEFAULTS = {"stop": ["\n\n", "\n \n"], "max_tokens": 512}
"""What `FIM` assumes. `COMPLETIONS` has other defaults: no stop, and 16 tokens."""

# Without `include_usage` a stream has no usage, and its cost would be unknown. Mistral refuses the option,
# and sends the usage without it.
_STREAMED = b',"stream":true,"stream_options":{"include_usage":true}}'
_STREAMED_PLAINLY = b',"stream":true}'


class ApiRequest(Struct):
    """A completion request: path, model, body and how it is sent."""

    path: str
    model: str
    body: bytes
    """The arguments as JSON, for the requested model."""
    is_streamed: bool = False
    asks_usage: bool = True
    """Whether a stream asks for its usage."""
    is_diffusing: bool = False
    """Whether each piece of a stream replaces the whole text so far."""
    sent_path: str = ""
    """Used instead of `path` if the provider has another endpoint for it."""
    sent_body: bytes = b""
    """Sent instead of `body` if the provider needs another model, or other fields."""
    trace: tuple[tuple[str, str], ...] = ()
    """Headers that propagate the caller's trace."""

    @property
    def payload(self) -> bytes:
        """The body as sent; a stream asks for its usage in the last chunk."""
        body = self.sent_body or self.body
        if not self.is_streamed:
            return body
        # The stream options are spliced in before the closing brace; the body is never decoded again.
        return body[:-1] + (_STREAMED if self.asks_usage else _STREAMED_PLAINLY)

    @property
    def max_input_tokens(self) -> int:
        """Upper bound of the payload's tokens: a token has at least one byte."""
        return len(self.sent_body or self.body) + (len(_STREAMED) - 1 if self.is_streamed else 0)


# Responses are without `gc`: decoded JSON has no cycles, and a chunk takes 500 instructions fewer.
class GroqUsage(Struct, gc=False):
    """Usage as nested in Groq's streams, in `x_groq`."""

    usage: Any = None


class FunctionCall(Struct, gc=False):
    """The function that the model wants to call, or a piece of that in a stream."""

    name: str | None = None
    arguments: Any = None
    """JSON text, or (some compatible servers) the object itself."""

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON text."""
        return read_text(self.arguments)


class ToolCall(Struct, gc=False):
    """A tool call that the model asks for, or a piece of one in a stream."""

    id: str | None = None
    function: FunctionCall | None = None
    index: int | None = None
    """Which call a piece belongs to; Gemini's compatible endpoint sends none."""


class Message(Struct, gc=False):
    """The model's message; in a stream, the text that a chunk adds, or, while diffusing, the whole text."""

    content: Any = None
    """Text, or (some compatible servers) parts with text."""
    tool_calls: list[ToolCall] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    """The same, as vLLM and OpenRouter name it."""
    refusal: str | None = None
    function_call: FunctionCall | None = None
    """The older form of a tool call, without an id."""
    images: Any = None
    audio: Any = None

    def note_media(self) -> list[str]:
        """Return a note for each kind of content that cannot be passed on as text."""
        kinds = set()
        if isinstance(self.content, list):
            kinds = {str(part.get("type")) for part in self.content if isinstance(part, dict)}
        notes = []
        if self.images or any("image" in kind for kind in kinds):
            notes.append("The answer has images, which this server does not pass on.")
        if self.audio or any("audio" in kind for kind in kinds):
            notes.append("The answer has audio, which this server does not pass on.")
        return notes

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls, in either form."""
        if self.tool_calls or self.function_call is None:
            return self.tool_calls or []
        return [ToolCall(function=self.function_call)]


class Choice(Struct, gc=False):
    """One answer: of a chat or an edit (a message), of a stream (a delta), or of a fill-in (a text)."""

    message: Message | None = None
    delta: Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    index: int | None = None
    """Which of several answers it belongs to."""
    error: Any = None
    """The cause of the finish reason `error`, where OpenRouter puts it."""


class ApiError(Struct):
    """The API's reason for refusing a request."""

    message: str | None = None
    type: str | None = None
    param: str | None = None
    code: str | None = None


class ReasoningSummary(Struct, gc=False):
    """The summary of the model's reasoning, where the call asked for one."""

    content: str | None = None
    status: str | None = None


class Embedding(Struct, gc=False):
    """The vector of one text."""

    embedding: list[float]
    index: int = 0


class Chunk(Struct, gc=False):
    """One chunk of a stream. Few fields, because each one costs time for every chunk."""

    # In the order in which the API sends them, because msgspec looks for the next name after the last one.
    model: str | None = None
    choices: list[Choice] | None = None
    usage: Any = None
    """As decoded: what it proves is decided with the money (`calling/settlement.py`)."""
    x_groq: GroqUsage | None = None
    warning: str | list[str] | None = None
    reasoning_summary: ReasoningSummary | None = None
    error: Any = None


class CompletionResponse(Chunk, gc=False):
    """A complete answer."""

    answers: dict[str, Any] | None = None
    """Only in the response to a decision."""
    data: list[Embedding] | None = None
    """Only in the response to texts to embed."""
    message: Any = None
    detail: Any = None
    """The reason of an error, in FastAPI's form."""


class Model(Struct):
    """A model as the API lists it."""

    id: str
    owned_by: str | None = None
    created: int | float | None = None
    context_length: int | None = None
    max_output_length: int | None = None
    pricing: dict[str, Any] | None = None
    """US dollars per token or request, by what they are for, as decimal strings."""
    supported_features: list[str] | None = None
    supported_endpoints: list[str] | None = None


class ModelList(Struct):
    """The list of models."""

    data: list[Model]


class ErrorResponse(Struct):
    """The body of a response whose status is not a success."""

    error: Any = None
    message: Any = None
    detail: Any = None
    usage: Any = None


MAX_VALUES = 50_000
MAX_SEARCHED_BYTES = 2_000_000
"""Limits of a response that is redacted string by string or read tolerantly: about 0.2 s of the interpreter.
Decoding as it should be takes a hundredth of that."""
_ESCAPE, _UNICODE, _SLASH = b"\\", b"\\u00", b"\\/"
"""JSON escapes that can hide a secret; secrets have no characters that need any other escape."""


def may_need_redaction(data: bytes) -> bool:
    """Check quickly whether JSON may contain a secret; false positives only cost time."""
    # Searching for one byte is ten times as fast as for two, and most answers have no escapes at all.
    return (_ESCAPE in data and (_UNICODE in data or _SLASH in data)) or logs.may_show_secret(data)


def check_cost(data: bytes) -> None:
    """Refuse JSON whose values would be handled one by one for long: everybody waits meanwhile."""
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    if values > MAX_VALUES or len(data) > MAX_SEARCHED_BYTES:
        raise DecodeError(f"it has {values:,} values in {len(data):,} bytes")


def change_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return decoded JSON with every string changed, names of members too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [change_strings(item, change) for item in value]
    if isinstance(value, dict):
        return {change(name): change_strings(item, change) for name, item in value.items()}
    return value


T = TypeVar("T")


def make_reader(kind: type[T]) -> Callable[[bytes], T]:
    """Return a function that decodes JSON as a type, without secrets."""
    decode = json.Decoder(kind).decode

    def read(body: bytes) -> T:
        if may_need_redaction(body):
            check_cost(body)
            body = json.encode(change_strings(json.decode(body), logs.scrubbed))
        return decode(body)

    return read


# Every response passes one of these readers, and each redacts secrets.
read_completion = make_reader(CompletionResponse)
read_chunk = json.Decoder(Chunk).decode
"""Does not redact: only for bytes that `may_need_redaction` has cleared."""
read_models = make_reader(ModelList)
read_refusal = make_reader(ErrorResponse)
write = json.Encoder().encode


def read_text(content: Any) -> str:
    """Return content as text: the joined texts of parts, and JSON for anything else."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, str | dict) for part in content):
        texts = (part if isinstance(part, str) else part.get("text") for part in content)
        return "".join(text for text in texts if isinstance(text, str))
    return write(content).decode()


def read_thinking(content: Any) -> str:
    """Return the reasoning among the parts of a content, where Mistral has it."""
    if not isinstance(content, list):
        return ""
    return "".join(read_text(part.get("thinking")) for part in content if isinstance(part, dict))


def redact_text(text: str) -> str:
    """Return a text without secrets."""
    return logs.scrubbed(text) if logs.may_show_secret(text.encode(errors="replace")) else text


def count_held(text: str) -> int:
    """Return the number of characters at the end of a text that may be the beginning of a secret.

    The caller holds them back until more text decides, so that a secret split over two pieces is found.
    """
    held = 0
    for secret in logs.secrets():
        # Complete secrets are redacted already, so only a shorter beginning can be left. The earliest start
        # counts: it holds back the most.
        tail = text[1 - len(secret) :]
        start = tail.find(secret[0])
        while start >= 0 and not secret.startswith(tail[start:]):
            start = tail.find(secret[0], start + 1)
        if start >= 0:
            held = max(held, len(tail) - start)
    return held
