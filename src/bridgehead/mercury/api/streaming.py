"""Streaming: a call whose answer comes piece by piece, and is told to the client as it comes.

A piece is read when the client has taken what came before, so a slow client slows the API's stream and
nothing piles up. Once the API has begun to answer, nothing is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from bridgehead.mcp import Context
from bridgehead.runtime.clock import Clock

from ..calling.call import Call
from ..completion import Completed, Metadata, tool_calls_of, usage_of
from ..errors import ApiFailed, MercuryError
from ..failures import CONTENT_SO_FAR
from ..settings import MercurySettings
from ..tools.progress import Progress
from . import wire
from .catalogue import Catalogue
from .client import Api, Request
from .completing import cost_of
from .stream import Gathered

_CLOSING_SECONDS = 0.05
"""How long a stream that is complete may take to end, so that its connection can be used again."""


class Streamer:
    """Asks the API for streamed answers, for one client's call."""

    def __init__(
        self, settings: MercurySettings, api: Api, catalogue: Catalogue, clock: Clock, context: Context[Any]
    ) -> None:
        self._api = api
        self._catalogue = catalogue
        self._clock = clock
        self._context = context
        self._heartbeat = settings.heartbeat / 1000
        self._first_byte = settings.first_byte_timeout / 1000
        self._most_bytes = settings.max_response_size

    async def stream(self, call: Call, key: str, seconds: float) -> Completed:
        """Send a call once, tell the client of each piece, and give the whole answer."""
        begun = self._clock.monotonic()
        request = Request(
            call.path, call.model, wire.streamed(call.body), key, seconds, min(self._first_byte, seconds)
        )
        gathered = Gathered(diffusing=call.diffusing, most_bytes=self._most_bytes)
        async with Progress(self._context, self._heartbeat, gathered.unsent) as progress:
            has_begun = False
            try:
                async with self._api.stream(request) as pieces:
                    has_begun = True
                    await self._read(pieces, gathered, progress)
            except MercuryError as error:
                if has_begun:
                    raise _after_the_first_byte(error, gathered) from error
                raise
            await progress.last()
        return self._completed(call, gathered, begun)

    async def _read(self, pieces: AsyncIterator[bytes], gathered: Gathered, progress: Progress) -> None:
        monotonic = self._clock.monotonic
        async for piece in pieces:
            if gathered.feed(piece, monotonic()):
                waiting = progress.news()
                if waiting is not None:
                    await waiting
            if gathered.is_done:
                await _closed(pieces)
                break
        gathered.end(monotonic())
        if gathered.finish_reason is None:
            raise gathered.broken("it ended without a finish reason")
        if not gathered.is_done:
            raise gathered.broken("it ended without its last event")

    def _completed(self, call: Call, gathered: Gathered, begun: float) -> Completed:
        now = self._clock.monotonic()
        used = usage_of(gathered.usage)
        model = gathered.model or call.model
        first = gathered.first_token_at
        generating = now - begun if first is None else now - first
        return Completed(
            gathered.text,
            Metadata(
                model,
                used,
                gathered.finish_reason or "",
                cost_usd=cost_of(self._catalogue, model, call.model, used),
                duration_ms=round((now - begun) * 1000, 3),
                time_to_first_token_ms=None if first is None else round((first - begun) * 1000, 3),
                tokens_per_second=round(used.completion_tokens / generating, 1) if generating > 0 else None,
                warnings=gathered.warnings or None,
            ),
            tool_calls_of(gathered.tool_calls),
        )


async def _closed(pieces: AsyncIterator[bytes]) -> None:
    """Let a complete stream end by itself, so that its connection can be kept."""
    with suppress(TimeoutError, MercuryError):
        async with asyncio.timeout(_CLOSING_SECONDS):
            async for _ in pieces:
                pass


def _after_the_first_byte(error: MercuryError, gathered: Gathered) -> MercuryError:
    """Give an error as one that is not tried again, with what had come."""
    return ApiFailed(
        error.message,
        error.code,
        next_step=CONTENT_SO_FAR,
        is_outage=error.is_outage,
        is_charge_possible=True,
        content=error.content or gathered.text,
    )
