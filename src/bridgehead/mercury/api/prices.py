"""Prices: what a model costs, from the API's list or a routes file. Pure.

A price that is only half known is not known: a component that we do not know makes the whole price unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..completion import Tokens

_CACHED = ("input_cache_reads", "input_cache_read")
"""The vendor's name, and OpenRouter's."""
_NEVER_SENT = frozenset({"image", "image_output", "audio", "audio_output", "input_audio_cache", "web_search"})
"""Prices of what our requests never ask for."""
_KNOWN = frozenset({"prompt", "completion", "request", "discount", "internal_reasoning", *_CACHED})


class Prices(Struct, frozen=True):
    """US dollars per token, and per request."""

    prompt: float
    completion: float
    cached: float
    """A prompt token that the API had cached."""
    request: float = 0.0
    dearest_prompt: float = 0.0
    """The most that a prompt token can cost, where something else than these may be charged for it."""
    dearest_completion: float = 0.0
    is_exact: bool = True
    """Whether the reported tokens decide the cost."""

    def cost(self, used: Tokens) -> float:
        """Return the cost of a send; what is neither prompt nor completion is reasoning, at its price."""
        cached = min(used.cached_input_tokens or 0, used.prompt_tokens)
        written = used.total_tokens - used.prompt_tokens
        full = used.prompt_tokens - cached
        return round(full * self.prompt + cached * self.cached + written * self.completion + self.request, 12)

    def worst_cost(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a send can cost. How many of its tokens are cached is not known."""
        prompt = max(self.prompt, self.cached, self.dearest_prompt)
        completion = max(self.completion, self.dearest_completion)
        return input_tokens * prompt + output_tokens * completion + self.request

    @property
    def is_free(self) -> bool:
        """Whether nothing costs anything."""
        return self.worst_cost(1, 1) == 0.0


def read_prices(listed: Mapping[str, Any]) -> Prices | None:
    """Read the price of a listed model; None if a part of it is missing or not known."""
    amounts = {name: read_price(value) for name, value in listed.items() if value is not None}
    prompt, completion = amounts.get("prompt"), amounts.get("completion")
    if prompt is None or completion is None:
        return None
    written = amounts.pop("input_cache_write", 0.0)
    for name, amount in amounts.items():
        if amount is None if name in _KNOWN else amount != 0 and name not in _NEVER_SENT:
            return None
    cached = next((amounts[name] for name in _CACHED if name in amounts), prompt)
    reasoning = amounts.get("internal_reasoning") or completion
    if written is None or cached is None:
        return None
    return Prices(
        prompt,
        completion,
        cached,
        amounts.get("request") or 0.0,
        written,
        reasoning,
        # Usage says neither how many tokens went into the cache, nor for certain how reasoning is charged.
        is_exact=written <= prompt and reasoning == completion,
    )


def read_price(value: Any) -> float | None:
    """Read a price; None if it is missing, negative or not a finite number."""
    try:
        amount = -1.0 if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    return amount if 0 <= amount < float("inf") else None
