"""Catalogue: which models there are, what they can do and what they cost, as the API lists them.

Kept for an hour, fetched once however many ask at the same time. Nothing about a model is known from
anywhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from bridgehead.runtime import logs
from bridgehead.runtime.clock import Clock

from ..completion import Usage
from ..errors import ApiFailed, MercuryError
from . import wire

TTL_SECONDS = 3600.0
EDITING = "edit"
_log = logs.logger("mercury.catalogue")


class Catalogue:
    """The models of the API."""

    def __init__(self, fetch: Callable[[], Awaitable[bytes]], clock: Clock, *, keep: bool = True) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keep = keep
        self._models: dict[str, wire.Model] = {}
        self._fetched_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    @property
    def age(self) -> float | None:
        """How many seconds ago the list was fetched; None when it never was."""
        return None if self._fetched_at is None else self._clock.monotonic() - self._fetched_at

    @property
    def is_fresh(self) -> bool:
        """Tell whether what is kept can be used."""
        age = self.age
        return age is not None and self._keep and age < TTL_SECONDS

    def find(self, model: str) -> wire.Model | None:
        """Give what is known of a model, without asking."""
        return self._models.get(model)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are known, without asking."""
        return tuple(self._models)

    def able(self, endpoint: str, preferred: str, allowed: tuple[str, ...]) -> str:
        """Give the preferred model if it can be used with an endpoint, else the first that can."""
        best = self._models.get(preferred)
        candidates = [model for model in self._models.values() if not allowed or model.id in allowed]
        if best is not None:
            candidates.insert(0, best)
        return next((model.id for model in candidates if _can(model, endpoint)), preferred)

    async def models(self) -> list[wire.Model]:
        """Give the models, asking the API where the list is not there or too old."""
        if not self.is_fresh:
            await self.refresh()
        return list(self._models.values())

    async def known(self) -> None:
        """See to it that there is a list, if there can be one."""
        if not self._models:
            try:
                await self.refresh()
            except MercuryError as error:
                _log.warn("no model list", code=error.code)

    async def refresh(self) -> None:
        """Fetch the list; whoever asks meanwhile waits for the same answer."""
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._refresh())
            self._fetching.add_done_callback(self._fetched)
        await asyncio.shield(self._fetching)

    def _fetched(self, task: asyncio.Task[None]) -> None:
        self._fetching = None
        if not task.cancelled():
            task.exception()  # whoever waited has heard of it

    async def _refresh(self) -> None:
        body = await self._fetch()
        try:
            listed = wire.read_models(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise ApiFailed(
                "The API's list of models cannot be read.", "BAD_RESPONSE", next_step="Try again later."
            ) from problem
        self._models = {model.id: model for model in listed.data}
        self._fetched_at = self._clock.monotonic()

    def cost(self, model: str, used: Usage) -> float | None:
        """Give what a call cost in US dollars; None where the prices are not known."""
        prices = self._prices(model)
        if prices is None:
            return None
        prompt, completion, cached_price = prices
        cached = min(used.cached_input_tokens or 0, used.prompt_tokens)
        full = used.prompt_tokens - cached
        return full * prompt + cached * cached_price + used.completion_tokens * completion

    def worst_cost(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """Give the most that a call can cost; None where the prices are not known."""
        prices = self._prices(model)
        if prices is None:
            return None
        return input_tokens * max(prices[0], prices[2]) + output_tokens * prices[1]

    def most_output(self, model: str) -> int | None:
        """Give how many tokens an answer of a model can have at most."""
        found = self._models.get(model)
        return None if found is None else found.max_output_length

    def _prices(self, model: str) -> tuple[float, float, float] | None:
        found = self._models.get(model)
        if found is None or found.pricing is None:
            return None
        prompt, completion = wire.price(found.pricing.prompt), wire.price(found.pricing.completion)
        if prompt is None or completion is None:
            return None
        cached = wire.price(found.pricing.input_cache_reads)
        return prompt, completion, prompt if cached is None else cached


def _can(model: wire.Model, endpoint: str) -> bool:
    """Tell whether a model can be used with an endpoint; where the list does not say, its name does."""
    if model.supported_endpoints is not None:
        return any(endpoint in place for place in model.supported_endpoints)
    return (endpoint == EDITING) == (EDITING in model.id)
