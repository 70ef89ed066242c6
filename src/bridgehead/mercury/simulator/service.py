"""Service: the endpoints of the simulated API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar

import msgspec

from . import answers, catalogue, rendering
from .answers import Answer
from .catalogue import Model
from .refusals import Refusal, unknown_model
from .rendering import Envelope, Streamed, Whole
from .wire import ChatRequest, CompletionRequest, EditRequest, FimRequest

PREFIX = "/v1"
_CHAT_PATH = f"{PREFIX}/chat/completions"
_FIM_PATH = f"{PREFIX}/fim/completions"
_EDIT_PATH = f"{PREFIX}/edit/completions"
_DECISIONS_PATH = f"{PREFIX}/decisions"
_POSTS = frozenset({_CHAT_PATH, _FIM_PATH, _EDIT_PATH, _DECISIONS_PATH})
_WORTH_REMEMBERING = 8192
"""Bytes; answers to longer requests are not cached."""
_LISTS = {
    f"{PREFIX}/models": "",
    f"{_CHAT_PATH}/models": catalogue.CHAT,
    f"{_FIM_PATH}/models": catalogue.FIM,
    f"{_EDIT_PATH}/models": catalogue.EDIT,
}

R = TypeVar("R", bound=CompletionRequest)


class Service:
    """Answers requests; keeps nothing between them but a cache."""

    def __init__(self, models: Sequence[Model], now: Callable[[], float]) -> None:
        self._models = {model.id: model for model in models}
        self._lists: dict[str, Whole] = {}
        for path, endpoint in _LISTS.items():
            listed = [model for model in models if not endpoint or endpoint in model.endpoints]
            self._lists[path] = Whole(msgspec.json.encode({"object": "list", "data": listed}))
        self._now = now
        self._numbers = count(1)
        self._chat = msgspec.json.Decoder(ChatRequest)
        self._fim = msgspec.json.Decoder(FimRequest)
        self._edit = msgspec.json.Decoder(EditRequest)
        # An answer depends on the request alone, and benchmarks repeat the same request.
        self._remembered = lru_cache(maxsize=256)(self._chat_answer)

    def reply(self, method: str, path: str, body: bytes) -> Whole | Streamed:
        """Answer a request; raises Refusal."""
        if path not in self._lists and path not in _POSTS:
            raise Refusal(404)
        if method != ("POST" if path in _POSTS else "GET"):
            raise Refusal(405)
        if path == _CHAT_PATH:
            find = self._remembered if len(body) < _WORTH_REMEMBERING else self._chat_answer
            chat, answer = find(body)
            envelope = self._envelope("chatcmpl")
            if not chat.stream:
                return rendering.whole(answer, envelope, "chat.completion")
            return rendering.streamed_chat(
                answer, envelope, diffusing=chat.diffusing, with_usage=chat.wants_usage
            )
        if path == _FIM_PATH:
            fim = _decoded(self._fim, body)
            answer = answers.fim(fim, self._model(fim, catalogue.FIM))
            envelope = self._envelope("cmpl")
            if not fim.stream:
                return rendering.whole(answer, envelope, "text_completion")
            return rendering.streamed_text(answer, envelope, with_usage=fim.wants_usage)
        if path == _EDIT_PATH:
            edit = _decoded(self._edit, body)
            answer = answers.edit(edit, self._model(edit, catalogue.EDIT))
            return rendering.whole(answer, self._envelope("edit"), "edit.completion")
        if path == _DECISIONS_PATH:
            return self._answer_decision(body)
        return self._lists[path]

    def text(self, body: dict[str, Any]) -> str:
        """Return the text of the answer to this body, or the arguments of the tool it calls."""
        encoded = msgspec.json.encode(body)
        if "prompt" in body:
            fim = _decoded(self._fim, encoded)
            return answers.fim(fim, self._model(fim, catalogue.FIM)).text
        # The body alone does not name its endpoint, and an edit looks like a chat: the model decides.
        chat = _decoded(self._chat, encoded)
        if self._models.get(chat.model) and catalogue.EDIT in self._models[chat.model].endpoints:
            edit = _decoded(self._edit, encoded)
            return answers.edit(edit, self._model(edit, catalogue.EDIT)).text
        return answers.chat(chat, self._model(chat, catalogue.CHAT)).text

    def _chat_answer(self, body: bytes) -> tuple[ChatRequest, Answer]:
        request = _decoded(self._chat, body)
        return request, answers.chat(request, self._model(request, catalogue.CHAT))

    def _answer_decision(self, body: bytes) -> Whole:
        """Answer every question the same way: yes, the first label, the middle of the scale."""
        request = msgspec.json.decode(body)
        answers: dict[str, dict[str, Any]] = {}
        for name, question in request["questions"].items():
            kind, criteria = question["type"], question.get("criteria")
            if kind == "choice" and criteria:
                label = next(iter(criteria))
                answer = {"choice": label, "confidence": 1.0, "probabilities": {label: 1.0}}
            elif kind == "score" and criteria:
                middle = len(criteria) // 2
                legend = {str(number): text for number, text in enumerate(criteria)}
                certain = {str(middle): 1.0}
                answer = {"score": middle, "confidence": 1.0, "probabilities": certain, "legend": legend}
            else:
                kind, answer = "noul", {"noul": 0.9}
            answers[name] = {"type": kind, **answer}
        usage = {"input_tokens": len(body) // 4, "output_tokens": len(answers)}
        return Whole(msgspec.json.encode({"answers": answers, "model": request["model"], "usage": usage}))

    def _envelope(self, kind: str) -> Envelope:
        return Envelope(f"{kind}-{next(self._numbers):012x}", int(self._now()))

    def _model(self, request: CompletionRequest, endpoint: str) -> Model:
        model = self._models.get(request.model)
        if model is None:
            raise unknown_model(request.model)
        if endpoint not in model.endpoints:
            raise Refusal(400, f"The model `{model.id}` cannot be used with {endpoint}.", param="model")
        return model


def _decoded(decoder: msgspec.json.Decoder[R], body: bytes) -> R:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        _, _, place = str(error).partition(" - at `$.")
        raise Refusal(400, str(error), param=place.rstrip("`") or None) from None
    except msgspec.DecodeError:
        raise Refusal(400, "We could not parse the JSON body of your request.") from None
