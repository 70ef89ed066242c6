"""Answers: the text that a simulated model gives for a request, always the same for the same one. Pure.

`rendering` decides how an answer looks on the wire.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from . import words
from .catalogue import Model
from .refusals import Refusal, too_long
from .wire import ChatRequest, CompletionRequest, EditRequest, FimRequest, NamedTool, Tool

COOLEST, HOTTEST, USUAL = 0.5, 1.0, 0.75
"""The service resets a temperature outside this range to its usual one, with a warning."""
FIM_STOP = ["\n\n", "\n \n"]
FIM_TOKENS = 512
_ECHOED = 60
_CACHE_BLOCK = 64
_PER_MESSAGE = 4
_REASONING = {"instant": 0, "low": 16, "medium": 64, "high": 256}
_LENGTH_WISH = re.compile(r"\b(\d{1,6}) words\b")
_EDIT_TAGS = ("code_to_edit", "original_code")


class Answer(Struct):
    """The answer of a model, and its tokens."""

    model: Model
    tokens: list[str]
    finish_reason: str
    prompt_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    tool: str = ""
    """The function to call; then the tokens are its arguments."""
    warning: str = ""
    summary: str = ""
    seed: int = 0

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.tokens)

    @property
    def completion_tokens(self) -> int:
        """Tokens to pay for, reasoning included."""
        return len(self.tokens) + self.reasoning_tokens


def chat(request: ChatRequest, model: Model) -> Answer:
    """Answer a conversation."""
    counts = [words.count(message.text) + _PER_MESSAGE for message in request.messages]
    question = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
    seed = crc32(f"{model.id} {request.seed} {question}".encode())
    tool = _choose_tool(request, question)
    reasoning = 0
    if request.reasoning_effort is not None and not model.is_older:
        if request.reasoning_effort not in _REASONING:
            efforts = ", ".join(_REASONING)
            raise Refusal(400, f"reasoning_effort must be one of {efforts}.", param="reasoning_effort")
        reasoning = _REASONING[request.reasoning_effort]
    if tool is not None:
        tokens = _example(tool.function.parameters, question, "tools")
    else:
        tokens = _content(request, question, seed)
    answer = _limited(
        request,
        model,
        tokens,
        prompt_tokens=_fitting(sum(counts), model),
        limit=request.max_completion_tokens or request.max_tokens,
        reasoning=reasoning,
    )
    answer.seed = seed
    # Like the vendor's prompt cache, which covers the messages before the last one in whole blocks.
    answer.cached_tokens = sum(counts[:-1]) // _CACHE_BLOCK * _CACHE_BLOCK
    if tool is not None:
        answer.tool = tool.function.name
        answer.finish_reason = "tool_calls" if answer.finish_reason == "stop" else answer.finish_reason
    if request.reasoning_summary and reasoning:
        answer.summary = "The question was read twice, then answered in the simplest way."
    return answer


def fim(request: FimRequest, model: Model) -> Answer:
    """Fill the gap between two pieces of code."""
    prompt_tokens = _fitting(words.count(request.prompt) + words.count(request.suffix), model)
    if request.stop is None:
        request.stop = FIM_STOP
    return _limited(
        request,
        model,
        words.code(request.prompt, request.suffix),
        prompt_tokens,
        request.max_tokens or FIM_TOKENS,
    )


def edit(request: EditRequest, model: Model) -> Answer:
    """Give back the code that is to be edited, with a change."""
    if len(request.messages) != 1 or request.messages[0].role != "user":
        raise Refusal(400, "Edit requests must contain exactly one user message.", param="messages")
    if request.stream:
        raise Refusal(400, "Streaming is not supported on this endpoint.", param="stream")
    text = request.messages[0].text
    tag = next((tag for tag in _EDIT_TAGS if f"<|{tag}|>" in text), None)
    if tag is None:
        raise Refusal(400, "The message must contain the required edit prompt tags.", param="messages")
    code = text.partition(f"<|{tag}|>")[2].partition(f"<|/{tag}|>")[0].replace("<|cursor|>", "").strip("\n")
    edited = f"{code.rstrip()}\n# checked\n"
    prompt_tokens = _fitting(words.count(text) + _PER_MESSAGE, model)
    return _limited(request, model, words.split(edited), prompt_tokens, request.max_tokens)


def _fitting(prompt_tokens: int, model: Model) -> int:
    if prompt_tokens > model.context_length:
        raise too_long(model.context_length, prompt_tokens)
    return prompt_tokens


def _content(request: ChatRequest, question: str, seed: int) -> list[str]:
    """Return JSON if `response_format` wants it; else prose that begins with the question.

    "… 300 words …" in the question sets the length, so that a test can ask for an answer of any size.
    """
    response_format = request.response_format
    if response_format is not None and response_format.type == "json_object":
        return words.split(msgspec.json.encode({"answer": _echo(question)}).decode())
    if response_format is not None and response_format.type == "json_schema":
        schema = response_format.json_schema.schema if response_format.json_schema else {}
        return _example(schema, question, "response_format")
    opening = f"You asked: “{_echo(question)}”"
    echo = [word if number == 0 else f" {word}" for number, word in enumerate(opening.split())]
    wish = _LENGTH_WISH.search(question)
    if wish is not None:
        return [*echo, *islice(words.prose(seed), max(0, int(wish[1]) - len(echo)))][: int(wish[1])]
    return echo + words.sentences(seed, 3 + seed % 4)


def _echo(question: str) -> str:
    return " ".join(question[: 4 * _ECHOED].split())[:_ECHOED].rstrip()


def _choose_tool(request: ChatRequest, question: str) -> Tool | None:
    """Return the tool to call: the one `tool_choice` names, one that the question mentions, or the first."""
    choice = request.tool_choice
    if isinstance(choice, NamedTool):
        name = choice.function.name
        for tool in request.tools:
            if tool.function.name == name:
                return tool
        raise Refusal(400, f"The tool `{name}` is not among the tools of the request.", param="tool_choice")
    is_answered = request.messages[-1].role == "tool"
    if not request.tools or choice == "none" or (is_answered and choice != "required"):
        return None
    return next((tool for tool in request.tools if tool.function.name in question), request.tools[0])


def _example(schema: dict[str, Any], question: str, param: str) -> list[str]:
    """Make a value for a schema of plain types, enums, objects, lists and references.

    Bounds, patterns and other keywords are ignored; the bridge reports a value that does not fit.
    """

    def make(part: Any) -> Any:
        if "$ref" in part:
            target: Any = schema
            for step in part["$ref"].removeprefix("#").strip("/").split("/"):
                target = target[step] if step else target
            return make(target)
        if part.get("anyOf"):
            return make(part["anyOf"][0])
        if part.get("enum"):
            return part["enum"][0]
        match part.get("type", "object" if "properties" in part else "string"):
            case "object":
                return {name: make(inner) for name, inner in part.get("properties", {}).items()}
            case "array":
                return [make(part["items"])] if "items" in part else []
            case "integer" | "number":
                return part.get("minimum", 1)
            case "boolean":
                return True
            case "null":
                return None
            case "string":
                return _echo(question)
            case kind:
                raise KeyError(kind)

    try:
        value = make(schema)
    except (AttributeError, KeyError, RecursionError, TypeError):  # not a schema, or endless recursion
        raise Refusal(400, "Invalid schema: no value can be made for it.", param=param) from None
    return words.split(msgspec.json.encode(value).decode())


def _limited(
    request: CompletionRequest,
    model: Model,
    tokens: list[str],
    prompt_tokens: int,
    limit: int | None,
    *,
    reasoning: int = 0,
) -> Answer:
    """Cut an answer at its stop sequences and at its length."""
    limit = min(limit or model.max_output_length, model.max_output_length)
    reasoning = min(reasoning, limit // 2)
    stops = [request.stop] if isinstance(request.stop, str) else request.stop
    if stops:
        text = "".join(tokens)
        end = min((at for stop in stops if stop and (at := text.find(stop)) >= 0), default=len(text))
        kept: list[str] = []
        for token in tokens:
            if end <= 0:
                break
            kept.append(token[:end])  # a stop sequence may begin inside a token
            end -= len(token)
        tokens = kept
    is_cut = len(tokens) + reasoning > limit
    temperature, warning = request.temperature, ""
    if temperature is not None and not COOLEST <= temperature <= HOTTEST:
        allowed = f"{COOLEST:g} to {HOTTEST:g}"
        warning = f"temperature {temperature:g} is outside of {allowed} and was reset to {USUAL:g}"
    return Answer(
        model,
        tokens[: limit - reasoning] if is_cut else tokens,
        "length" if is_cut else "stop",
        prompt_tokens,
        reasoning_tokens=reasoning,
        warning=warning,
    )
