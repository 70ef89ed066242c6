"""Completing: a call and its whole answer. What the API says becomes a `Completed`, or an error."""

from __future__ import annotations

import msgspec

from bridgehead.runtime.clock import Clock

from .. import failures
from ..calling.call import Call
from ..completion import Completed, Metadata, Usage, tool_calls_of, usage_of
from ..errors import ApiFailed, MercuryError
from . import wire
from .catalogue import Catalogue
from .client import Api, Request


class Completer:
    """Asks the API for whole answers."""

    def __init__(self, api: Api, catalogue: Catalogue, clock: Clock) -> None:
        self._api = api
        self._catalogue = catalogue
        self._clock = clock

    async def complete(self, call: Call, key: str, seconds: float) -> Completed:
        """Send a call once and read its answer."""
        begun = self._clock.monotonic()
        body = await self._api.post(Request(call.path, call.model, call.body, key, seconds))
        return self._read(call, body, self._clock.monotonic() - begun)

    def _read(self, call: Call, body: bytes, seconds: float) -> Completed:
        try:
            found = wire.read_completion(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise unreadable("it is not what the API's description says") from problem
        if found.error is not None:
            raise failures.in_stream(found.error, "")
        if not found.choices:
            raise unreadable("there is no answer in it")
        choice = found.choices[0]
        message = choice.message or wire.Message(choice.text)
        content = message.text
        if choice.finish_reason is None:
            raise unreadable("it does not say why it ends, so it may not be whole", content)
        used = usage_of(found.usage)
        model = found.model or call.model
        return Completed(
            content,
            Metadata(
                model,
                used,
                choice.finish_reason,
                cost_usd=cost_of(self._catalogue, model, call.model, used),
                duration_ms=round(seconds * 1000, 3),
                warnings=wire.warnings_of(found.warning) or None,
            ),
            tool_calls_of(message.tool_calls),
        )


def cost_of(catalogue: Catalogue, model: str, asked: str, used: Usage) -> float | None:
    """Give what a call cost, by the model that answered, or else by the one that was asked for."""
    name = model if catalogue.find(model) is not None else asked
    cost = catalogue.cost(name, used)
    return None if cost is None else round(cost, 12)


def unreadable(why: str, content: str | None = None) -> MercuryError:
    """Say that an answer came that cannot be used."""
    return ApiFailed(
        f"The API's answer cannot be used: {why}.",
        "BAD_RESPONSE",
        is_charge_possible=True,
        next_step="Try again; if it stays like this, check MERCURY_API_URL.",
        content=content,
    )
