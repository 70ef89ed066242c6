"""Catalogue: which models there are, what they can do and what they cost, as the API lists them.

Kept for an hour, fetched once however many ask at the same time, and renewed while it is used: prices change.
Nothing about a model is known from anywhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from bridgehead.mcp import UNDECODABLE
from bridgehead.runtime import logs
from bridgehead.runtime.timing import Clock

from ..completion import Metadata, Tokens
from ..errors import MercuryError
from ..settings import MercurySettings
from . import wire

TTL_SECONDS = 3600.0
RETRY_SECONDS = 30.0
"""After a failure, how long an old list is used before the API is asked for it again."""
PRICE_SECONDS = 1.0
"""How long an answer waits for prices that are being fetched; later ones are only counted."""
EDITING = "edit"
UNKNOWN = "(unknown)"
"""What models are counted under that are on no list."""
Prices = tuple[float, float, float]
"""The prices of a token: of a prompt, of an answer, of a prompt that the API has cached."""
_log = logs.logger("mercury.catalogue")


class Lister(Protocol):
    """Fetches the list of models."""

    async def fetch_models(self, key: str, seconds: float, *, endpoint: str = "") -> bytes:
        """Return the list as it came, of all models or of an endpoint's; raises `MercuryError`."""


class KeyRing(Protocol):
    """Knows which key to use."""

    def pick(self) -> str:
        """Return a key; raises `MercuryError` where there is none."""


class Terms(Protocol):
    """What a model costs and how long its answers get, where somebody here says so."""

    @property
    def prices(self) -> Prices:
        """What it costs."""

    @property
    def max_output(self) -> int | None:
        """The most tokens of an answer."""


class Catalogue:
    """The models of the API."""

    def __init__(
        self,
        api: Lister,
        keys: KeyRing,
        clock: Clock,
        settings: MercurySettings,
        terms: Mapping[str, Terms] | None = None,
    ) -> None:
        self._terms = terms or {}
        """What somebody here says of models, which the API's own list may not say."""
        self._api = api
        self._keys = keys
        self._clock = clock
        self._seconds = settings.request_timeout / 1000
        self._default = settings.model
        self._is_kept = settings.cache_enabled
        self._models: dict[str, wire.Model] = {}
        self._prices: dict[str, Prices | None] = {}
        """The prices that were read from the list: every answer is priced, and the list seldom changes."""
        self._by_endpoint: dict[str, tuple[str, ...]] = {}
        """The names in the list of an endpoint of its own, where there is one."""
        self._asked: set[str] = set()
        """Endpoints that were asked for such a list."""
        self._fetched_at: float | None = None
        self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the list, and its prices, are not older than they may get."""
        fetched = self._fetched_at
        return fetched is not None and self._clock.monotonic() - fetched < TTL_SECONDS

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are known, without asking."""
        return (*self._models, *(name for name in self._terms if name not in self._models))

    def counted_name(self, model: str) -> str:
        """Return the name that a model is counted under: clients may make up any number of names."""
        return model if model in self._models or model in self._terms or model == self._default else UNKNOWN

    def expire(self) -> None:
        """Fetch the list again before the next price is asked for: it was wrong."""
        self._fetched_at, self._tried_at = None, float("-inf")

    def find(self, model: str) -> wire.Model | None:
        """Return what is known of a model, without asking."""
        return self._models.get(model)

    async def list_able(self, endpoint: str) -> tuple[str, ...]:
        """Return the models that can be used with an endpoint; nothing where that is not known."""
        await self.load()
        if all(model.supported_endpoints is None for model in self._models.values()):
            await self._load_endpoint(endpoint)
            if endpoint in self._by_endpoint:
                return self._by_endpoint[endpoint]
        return tuple(model.id for model in self._models.values() if _serves(model, endpoint))

    async def _load_endpoint(self, endpoint: str) -> None:
        """Ask for the endpoint's own list, once for each list of all models; not every API has one."""
        if not self._models or endpoint in self._asked:
            return
        self._asked.add(endpoint)
        try:
            body = await self._api.fetch_models(self._keys.pick(), self._seconds, endpoint=endpoint)
            self._by_endpoint[endpoint] = tuple(model.id for model in wire.read_models(body).data)
        except (MercuryError, *UNDECODABLE) as error:
            _log.info("no model list of the endpoint", endpoint=endpoint, reason=str(error))

    # --- fetching ------------------------------------------------------------------------------------------

    async def fetch(self) -> list[wire.Model]:
        """Return the models, asking the API where the list is missing or too old."""
        if not (self._is_kept and self.is_current):
            await self.refresh()
        return list(self._models.values())

    async def load(self, seconds: float | None = None) -> None:
        """Fetch the list if there is none, or an old one; without one the catalogue just knows nothing."""
        if self.is_loaded:
            return
        try:
            async with asyncio.timeout(seconds):
                await self.refresh()
        except MercuryError as error:
            _log.warn("no model list", code=error.code)
        except TimeoutError:
            _log.warn("no model list yet", seconds=seconds)

    @property
    def is_loaded(self) -> bool:
        """Whether there is a list, and a newer one need not be waited for."""
        return bool(self._models) and not self._is_due

    @property
    def _is_due(self) -> bool:
        return not self.is_current and self._clock.monotonic() - self._tried_at >= RETRY_SECONDS

    def renew(self) -> None:
        """Fetch the list in the background if it is missing or old."""
        if self._is_due and self._fetching is None:
            self._fetching = self._begin()

    async def wait_for_prices(self) -> None:
        """Wait a moment for a list that is being fetched."""
        if self._fetching is not None:
            await asyncio.wait([self._fetching], timeout=PRICE_SECONDS)

    async def refresh(self) -> None:
        """Fetch the list; whoever asks meanwhile waits for the same answer."""
        if self._fetching is None:
            self._fetching = self._begin()
        await asyncio.shield(self._fetching)

    def _begin(self) -> asyncio.Task[None]:
        self._tried_at = self._clock.monotonic()
        task = asyncio.create_task(self._refresh())
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        self._fetching = None
        if not task.cancelled():
            task.exception()  # whoever waited has heard of it

    async def _refresh(self) -> None:
        body = await self._api.fetch_models(self._keys.pick(), self._seconds)
        try:
            listed = wire.read_models(body)
        except UNDECODABLE as problem:
            raise MercuryError(
                "BAD_RESPONSE", "The API's list of models cannot be read.", next_step="Try again later."
            ) from problem
        self._models = {model.id: model for model in listed.data}
        self._by_endpoint, self._asked, self._prices = {}, set(), {}
        self._fetched_at = self._clock.monotonic()

    # --- prices --------------------------------------------------------------------------------------------

    def price(self, metadata: Metadata, asked: str) -> float | None:
        """Return what an answer cost, by the model that answered, or else by the one that was asked for.

        Without reported usage the cost is unknown (None), not zero.
        """
        if not metadata.usage.total_tokens:
            return None
        is_known = metadata.model in self._models or metadata.model in self._terms
        name = metadata.model if is_known else asked
        cost = self.cost(name, metadata.usage)
        return None if cost is None else round(cost, 12)

    def cost(self, model: str, used: Tokens) -> float | None:
        """Return what tokens of a model cost in US dollars; None where its prices are not known."""
        prices = self._find_prices(model)
        if prices is None:
            return None
        prompt, completion, cached_price = prices
        cached = min(used.cached_input_tokens or 0, used.prompt_tokens)
        full = used.prompt_tokens - cached
        return full * prompt + cached * cached_price + used.completion_tokens * completion

    def worst_cost(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """Return the most that a call can cost; None where the prices are not known."""
        prices = self._find_prices(model)
        if prices is None:
            return None
        return input_tokens * max(prices[0], prices[2]) + output_tokens * prices[1]

    def has_current_price(self, model: str) -> bool:
        """Tell whether a budget can rely on the price of a model."""
        return model in self._terms or self.is_current

    def max_output(self, model: str) -> int | None:
        """Return how many tokens an answer of a model can have; None where that is not known."""
        if model in self._terms and self._terms[model].max_output is not None:
            return self._terms[model].max_output
        found = self._models.get(model)
        length = None if found is None else found.max_output_length
        return length if length is None or length > 0 else None

    def _find_prices(self, model: str) -> Prices | None:
        if model in self._terms:
            return self._terms[model].prices
        found = self._models.get(model)
        if found is None:
            return None
        if model not in self._prices:
            self._prices[model] = _read_prices(found)
        return self._prices[model]


def _read_prices(model: wire.Model) -> Prices | None:
    pricing = model.pricing
    if pricing is None:
        return None
    prompt, completion = wire.read_price(pricing.prompt), wire.read_price(pricing.completion)
    if prompt is None or completion is None:
        return None
    cached = wire.read_price(pricing.input_cache_reads)
    return prompt, completion, prompt if cached is None else cached


def _serves(model: wire.Model, endpoint: str) -> bool:
    """Tell whether a model can be used with an endpoint; where the list does not say, its name does."""
    kind = endpoint.split("/")[1]
    if model.supported_endpoints is not None:
        return any(kind in place for place in model.supported_endpoints)
    return (kind == EDITING) == (EDITING in model.id)
