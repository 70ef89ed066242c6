"""Answers: what a simulated model says to a request, always the same to the same one.

Takes values and returns values; how an answer looks on the wire is not decided here.
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
from .conforming import example
from .refusals import Refusal, too_long
from .wire import Asked, ChatRequest, EditRequest, FimRequest, NamedTool, Tool

COOLEST, HOTTEST, USUAL = 0.5, 1.0, 0.75
"""The service resets a temperature outside of this range to its usual one."""
FIM_STOP = ["\n\n", "\n \n"]
FIM_TOKENS = 512
_ECHOED = 60
_CACHE_BLOCK = 64
_PER_MESSAGE = 4
_REASONING = {"instant": 0, "low": 16, "medium": 64, "high": 256}
_LENGTH_WISH = re.compile(r"\b(\d{1,6}) words\b")
_EDIT_TAGS = ("code_to_edit", "original_code")


class Answer(Struct):
    """What a model says, and what it cost to say it."""

    model: Model
    tokens: list[str]
    finish_reason: str
    prompt_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    tool: str = ""
    """The function that is called, where the tokens are its arguments."""
    warning: str = ""
    summary: str = ""
    seed: int = 0

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.tokens)

    @property
    def completion_tokens(self) -> int:
        """What it counts as, with the reasoning before it."""
        return len(self.tokens) + self.reasoning_tokens


def chat(request: ChatRequest, model: Model) -> Answer:
    """Answer a conversation."""
    counts = [words.count(message.text) + _PER_MESSAGE for message in request.messages]
    said = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
    seed = crc32(f"{model.id} {request.seed} {said}".encode())
    tool = _chosen_tool(request, said)
    reasoning = _reasoning(request, model)
    answer = _limited(
        request,
        model,
        tokens=_arguments(tool, said) if tool else _content(request, said, seed),
        prompt_tokens=_fitting(sum(counts), model),
        limit=request.max_completion_tokens or request.max_tokens,
        reasoning=reasoning,
    )
    answer.seed = seed
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
    code = next((found for tag in _EDIT_TAGS if (found := _between(text, tag)) is not None), None)
    if code is None:
        raise Refusal(400, "The message must contain the required edit prompt tags.", param="messages")
    edited = f"{code.rstrip()}\n# checked\n"
    prompt_tokens = _fitting(words.count(text) + _PER_MESSAGE, model)
    return _limited(request, model, words.split(edited), prompt_tokens, request.max_tokens)


def _between(text: str, tag: str) -> str | None:
    _, opened, rest = text.partition(f"<|{tag}|>")
    return rest.partition(f"<|/{tag}|>")[0].replace("<|cursor|>", "").strip("\n") if opened else None


def _fitting(prompt_tokens: int, model: Model) -> int:
    if prompt_tokens > model.context_length:
        raise too_long(model.context_length, prompt_tokens)
    return prompt_tokens


def _content(request: ChatRequest, said: str, seed: int) -> list[str]:
    wanted = request.response_format
    if wanted is not None and wanted.type == "json_object":
        return words.split(msgspec.json.encode({"answer": _echo(said)}).decode())
    if wanted is not None and wanted.type == "json_schema":
        schema = wanted.json_schema.schema if wanted.json_schema else {}
        return _example(schema, said, "response_format")
    opening = f"You asked: “{_echo(said)}”"
    echo = [word if number == 0 else f" {word}" for number, word in enumerate(opening.split())]
    wish = _LENGTH_WISH.search(said)
    if wish is not None:
        return [*echo, *islice(words.prose(seed), max(0, int(wish[1]) - len(echo)))][: int(wish[1])]
    return echo + words.sentences(seed, 3 + seed % 4)


def _echo(said: str) -> str:
    return " ".join(said[: 4 * _ECHOED].split())[:_ECHOED].rstrip()


def _chosen_tool(request: ChatRequest, said: str) -> Tool | None:
    choice = request.tool_choice
    if isinstance(choice, NamedTool):
        return _named_tool(request.tools, choice.function.name)
    is_answered = request.messages[-1].role == "tool"
    if not request.tools or choice == "none" or (is_answered and choice != "required"):
        return None
    return next((tool for tool in request.tools if tool.function.name in said), request.tools[0])


def _named_tool(tools: list[Tool], name: str) -> Tool:
    for tool in tools:
        if tool.function.name == name:
            return tool
    raise Refusal(400, f"The tool `{name}` is not among the tools of the request.", param="tool_choice")


def _arguments(tool: Tool, said: str) -> list[str]:
    return _example(tool.function.parameters, said, "tools")


def _example(schema: dict[str, Any], said: str, param: str) -> list[str]:
    try:
        value = example(schema, _echo(said))
    except ValueError as error:
        raise Refusal(400, str(error), param=param) from None
    return words.split(msgspec.json.encode(value).decode())


def _reasoning(request: ChatRequest, model: Model) -> int:
    effort = request.reasoning_effort
    if effort is None or model.is_older:
        return 0
    if effort not in _REASONING:
        raise Refusal(
            400, f"reasoning_effort must be one of {', '.join(_REASONING)}.", param="reasoning_effort"
        )
    return _REASONING[effort]


def _limited(
    request: Asked,
    model: Model,
    tokens: list[str],
    prompt_tokens: int,
    limit: int | None,
    *,
    reasoning: int = 0,
) -> Answer:
    """Cut an answer at its stop sequences and at its length."""
    most = min(limit or model.max_output_length, model.max_output_length)
    reasoning = min(reasoning, most // 2)
    stops = [request.stop] if isinstance(request.stop, str) else request.stop
    if stops:
        tokens = _stopped(tokens, stops)
    is_cut = len(tokens) + reasoning > most
    return Answer(
        model,
        tokens[: most - reasoning] if is_cut else tokens,
        "length" if is_cut else "stop",
        prompt_tokens,
        reasoning_tokens=reasoning,
        warning=_warning(request.temperature),
    )


def _stopped(tokens: list[str], stops: list[str]) -> list[str]:
    text = "".join(tokens)
    end = min((at for stop in stops if stop and (at := text.find(stop)) >= 0), default=len(text))
    kept: list[str] = []
    for token in tokens:
        if end <= 0:
            break
        kept.append(token[:end])
        end -= len(token)
    return kept


def _warning(temperature: float | None) -> str:
    if temperature is None or COOLEST <= temperature <= HOTTEST:
        return ""
    return f"temperature {temperature:g} is outside of {COOLEST:g} to {HOTTEST:g} and was reset to {USUAL:g}"
