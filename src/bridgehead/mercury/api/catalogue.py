"""Catalogue: the API's models with their capabilities and prices, from the API's own list.

Cached for an hour, fetched once for all concurrent callers, and renewed while in use, because prices change.
Routes may add prices (`terms`); nothing about a model is built in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from bridgehead.mcp import UNDECODABLE
from bridgehead.runtime import logs
from bridgehead.runtime.timing import Clock

from ..calling.keys import Keys
from ..calling.routes import ModelTerms
from ..errors import MercuryError
from ..settings import MercurySettings
from . import wire
from .client import ApiClient
from .prices import Prices, read_prices
from .tolerance import read_tolerantly

TTL_SECONDS = 3600.0
RETRY_SECONDS = 30.0
"""How long to use the old list after a failed fetch before trying again."""
PRICE_SECONDS = 1.0
"""How long an answer waits for the prices; after that it is returned without its cost."""
EDITING = "edit"
UNKNOWN = "(unknown)"
"""The name of unlisted models in usage and metrics."""
_log = logs.logger("mercury.catalogue")


def _read_list(body: bytes) -> list[wire.Model]:
    """Return the listed models; skip one that cannot be read, so that the others keep their prices."""
    try:
        return wire.read_models(body).data
    except UNDECODABLE:
        with suppress(*UNDECODABLE):
            return read_tolerantly(body, wire.ModelList)[0].data
        return read_tolerantly(body, list[wire.Model])[0]  # some servers send the bare list


class Catalogue:
    """The models of the API."""

    def __init__(
        self,
        api: ApiClient,
        keys: Keys,
        clock: Clock,
        settings: MercurySettings,
        terms: Mapping[str, ModelTerms] | None = None,
    ) -> None:
        self._terms = terms or {}
        """From the routes file; these override the API's list."""
        self._api = api
        self._keys = keys
        self._clock = clock
        self._seconds = settings.request_timeout / 1000
        self._default = settings.model
        self._allowed = settings.allowed_models
        self._is_kept = settings.cache_enabled
        self._models: dict[str, wire.Model] = {}
        self._prices: dict[str, Prices | None] = {}
        """Prices parsed from the list, cached: every answer is priced, and the list seldom changes."""
        self._by_endpoint: dict[str, tuple[str, ...]] = {}
        """Model names from the endpoints' own lists, for APIs that have these."""
        self._asked: set[str] = set()
        """Endpoints whose own list was requested since the last refresh."""
        self._unserved: set[tuple[str, str]] = set()
        """Endpoints and default models that the API refused since the last refresh."""
        self._fetched_at: float | None = None
        self._is_doubted = False
        self._due_at = float("-inf")
        """When to fetch the list again: `TTL_SECONDS` after a fetch, `RETRY_SECONDS` after a try."""
        self._fetching: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the list is younger than `TTL_SECONDS`."""
        fetched = self._fetched_at
        return fetched is not None and self._clock.monotonic() - fetched < TTL_SECONDS

    @property
    def names(self) -> tuple[str, ...]:
        """All known names, without a request."""
        return (*self._models, *(name for name in self._terms if name not in self._models))

    @property
    def lists_endpoints(self) -> bool:
        """Whether the list says which endpoints a model serves."""
        return any(model.supported_endpoints is not None for model in self._models.values())

    def counted_name(self, model: str) -> str:
        """Return the name for metrics; unlisted ones share one, because clients can invent any number."""
        return model if model in self._models or model in self._terms or model == self._default else UNKNOWN

    def expire(self) -> None:
        """Doubt the list: a charge was above its prices. Nothing is priced by it until a newer one came."""
        self._is_doubted, self._due_at = True, float("-inf")

    def find(self, model: str) -> wire.Model | None:
        """Return the listed model, without a request."""
        return self._models.get(model)

    def mark_unserved(self, endpoint: str, model: str) -> None:
        """Remember that the API refused a default model for an endpoint."""
        self._unserved.add((endpoint, model))

    def is_unserved(self, endpoint: str, model: str) -> bool:
        """Return whether the API has refused a default model for an endpoint."""
        return (endpoint, model) in self._unserved

    def find_longer(self, names: Sequence[str], model: str) -> str | None:
        """Return the name with the next longer context than the model's; None if there is none."""
        known = self._models.get(model)
        minimum = 0 if known is None else known.context_length or 0
        lengths = {name: self._models[name].context_length or 0 for name in names if name in self._models}
        longer = [name for name, length in lengths.items() if length > minimum and name != model]
        return min(longer, key=lengths.__getitem__, default=None)

    async def list_usable(self, endpoint: str) -> tuple[str, ...]:
        """Return the allowed models that can be used with an endpoint; empty if unknown."""
        usable = await self._list_usable(endpoint)
        return tuple(name for name in usable if not self._allowed or name in self._allowed)

    async def _list_usable(self, endpoint: str) -> tuple[str, ...]:
        await self.load()
        kind = endpoint.split("/")[1]
        if not self.lists_endpoints:
            # The older API does not list the capabilities of a model. It has a list per endpoint instead,
            # which other compatible APIs lack, so a failure is normal. Ask once per refresh.
            if self._models and endpoint not in self._asked:
                self._asked.add(endpoint)
                try:
                    body = await self._api.fetch_models(self._keys.pick(), self._seconds, endpoint=endpoint)
                    self._by_endpoint[endpoint] = tuple(model.id for model in _read_list(body))
                except (MercuryError, *UNDECODABLE) as error:
                    _log.info("no model list of the endpoint", endpoint=endpoint, reason=str(error))
            if endpoint in self._by_endpoint:
                return self._by_endpoint[endpoint]
        usable = []
        for model in self._models.values():
            # Without the field, the name decides: the vendor's edit models have `edit` in it.
            if model.supported_endpoints is None:
                serves = (kind == EDITING) == (EDITING in model.id)
            else:
                serves = any(kind in place for place in model.supported_endpoints)
            if serves:
                usable.append(model.id)
        return tuple(usable)

    # --- fetching ------------------------------------------------------------------------------------------

    async def fetch(self) -> list[wire.Model]:
        """Return the models; fetch the list if it is missing or old, or if caching is off."""
        if not (self._is_kept and self.is_current):
            await self.refresh()
        return list(self._models.values())

    async def load(self, seconds: float | None = None) -> MercuryError | None:
        """Fetch the list if there is none that can be used; return why there is none now, if so.

        An old list stays in use until a newer one has arrived, which is fetched meanwhile.
        """
        if self.is_loaded:
            self.renew()
            return None
        try:
            async with asyncio.timeout(seconds):
                await self.refresh()
        except MercuryError as error:
            _log.warn("no model list", code=error.code)
            return error
        except TimeoutError:
            _log.warn("no model list yet", seconds=seconds)
            return MercuryError("TIMEOUT", "The list of models did not come in time. Nothing was sent.")
        return None

    @property
    def is_loaded(self) -> bool:
        """Whether there is a list, and no charge has shown it to be wrong."""
        return bool(self._models) and not self._is_doubted

    def renew(self) -> None:
        """Fetch the list in the background if it is missing or old."""
        if self._clock.monotonic() >= self._due_at and self._fetching is None:
            self._fetching = self._begin()

    async def wait_for_prices(self) -> None:
        """Wait up to `PRICE_SECONDS` for the fetch that is under way, if any."""
        if self._fetching is not None:
            await asyncio.wait([self._fetching], timeout=PRICE_SECONDS)

    async def refresh(self) -> None:
        """Fetch the list; concurrent callers share one request."""
        if self._fetching is None:
            self._fetching = self._begin()
        fetching = self._fetching
        # Cancelling one caller does not cancel the fetch of the others. Not `shield`: since Python 3.14 it
        # prints a failure that comes after the cancellation.
        await asyncio.wait([fetching])
        fetching.result()

    def _begin(self) -> asyncio.Task[None]:
        self._due_at = max(self._due_at, self._clock.monotonic() + RETRY_SECONDS)
        task = asyncio.create_task(self._fetch_list())

        def forget(task: asyncio.Task[None]) -> None:
            self._fetching = None
            if not task.cancelled():
                task.exception()  # retrieved, or asyncio logs it; callers of `refresh` have raised it

        task.add_done_callback(forget)
        return task

    async def _fetch_list(self) -> None:
        body = await self._api.fetch_models(self._keys.pick(), self._seconds)
        try:
            listed = _read_list(body)
        except UNDECODABLE as problem:
            raise MercuryError(
                "BAD_RESPONSE", "The API's list of models cannot be read.", next_step="Try again later."
            ) from problem
        self._models = {model.id: model for model in listed}
        self._by_endpoint, self._asked, self._prices, self._unserved = {}, set(), {}, set()
        self._is_doubted, self._fetched_at = False, self._clock.monotonic()
        self._due_at = self._fetched_at + TTL_SECONDS

    # --- prices --------------------------------------------------------------------------------------------

    def find_prices(self, model: str) -> Prices | None:
        """Return what a model costs; None if that is not known."""
        if model in self._terms:
            return self._terms[model].prices
        listed = self._models.get(model)
        if listed is None:
            return None
        if model not in self._prices:
            self._prices[model] = read_prices(listed.pricing or {})
        return self._prices[model]

    def find_answering(self, answered: str, asked: str) -> str:
        """Return the model whose price counts: the one that answered if it is known, or the requested one."""
        return answered if answered in self._models or answered in self._terms else asked

    def has_current_price(self, model: str) -> bool:
        """Return whether a budget can rely on the price of a model."""
        return model in self._terms or not self._is_doubted

    def max_output(self, model: str) -> int | None:
        """Return the limit of completion tokens; None if unknown."""
        if model in self._terms and self._terms[model].max_output is not None:
            return self._terms[model].max_output
        listed = self._models.get(model)
        length = None if listed is None else listed.max_output_length
        return length if length is None or length > 0 else None

    def context_length(self, model: str) -> int | None:
        """Return the limit of prompt tokens; None if unknown."""
        listed = self._models.get(model)
        length = None if listed is None else listed.context_length
        return length if length is None or length > 0 else None
