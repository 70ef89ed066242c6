"""Limits: how much each client and the whole server may ask of the API in a window of time.

Calls and tokens, as the settings have them, in sliding windows. Room is taken before a request goes out, for
the most that it may use, and corrected when it is known what it did use. A call that would pass a limit
waits, if the settings allow that, or is refused with the time at which there is room.
"""

from __future__ import annotations

import asyncio
from collections import deque

from msgspec import Struct

from bridgehead.runtime.timing import Clock

from ..errors import MercuryError, format_seconds
from ..settings import MercurySettings

MOST_CLIENTS = 10_000

Entry = list[float]
"""When room was taken, and how much."""


class Window:
    """A sliding window over one thing that is limited."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self._seconds = seconds
        self._entries: deque[Entry] = deque()
        self._used = 0.0

    def left(self, now: float) -> float:
        """Return how much room there is."""
        self._forget(now)
        return max(0.0, self.most - self._used)

    def delay(self, amount: float, now: float) -> float:
        """Return the seconds until there is room for an amount; 0 where there is some now."""
        self._forget(now)
        excess = self._used + amount - self.most
        if excess <= 0:
            return 0.0
        for begun, taken in self._entries:
            excess -= taken
            if excess <= 0:
                return max(begun + self._seconds - now, 0.001)
        return self._seconds

    def take(self, amount: float, now: float) -> Entry:
        """Hold room for an amount."""
        entry = [now, amount]
        self._entries.append(entry)
        self._used += amount
        return entry

    def correct(self, entry: Entry, amount: float) -> None:
        """Put what was really used in the place of what was held."""
        if self._entries and entry[0] >= self._entries[0][0]:
            self._used += amount - entry[1]
        entry[1] = amount

    def is_idle(self, now: float) -> bool:
        """Tell whether nothing is in the window."""
        self._forget(now)
        return not self._entries

    def _forget(self, now: float) -> None:
        entries = self._entries
        oldest = now - self._seconds
        while entries and entries[0][0] <= oldest:
            self._used -= entries.popleft()[1]
        if not entries:
            self._used = 0.0


class Amounts(Struct, frozen=True):
    """Of each thing that is limited, how much."""

    requests: int
    input_tokens: int
    output_tokens: int


Held = dict[str, tuple[Window, Entry]]
"""Room that is held, by what it is held of."""
UNKNOWN = 2**53
"""Stands for an amount that has no known end; where it is limited, there is never room for it."""


class Scope:
    """The limits of one client, or of the whole server."""

    def __init__(self, name: str, most: Amounts, seconds: float) -> None:
        self.name = name
        self._windows = {
            what: Window(limit, seconds)
            for what in Amounts.__struct_fields__
            if (limit := getattr(most, what))
        }

    def left(self, now: float) -> dict[str, int]:
        """Return what is left of each limit there is."""
        return {what: int(window.left(now)) for what, window in self._windows.items()}

    def is_idle(self, now: float) -> bool:
        """Tell whether nothing was asked for lately."""
        return all(window.is_idle(now) for window in self._windows.values())

    def delay(self, asked: Amounts, now: float) -> float:
        """Return the seconds until there is room; raises where there never is."""
        delay = 0.0
        for what, window in self._windows.items():
            amount = getattr(asked, what)
            if amount > window.most:
                raise _impossible(self.name, what, amount, window.most)
            delay = max(delay, window.delay(amount, now))
        return delay

    def take(self, asked: Amounts, now: float) -> Held:
        """Hold room for what is asked for."""
        return {
            what: (window, window.take(amount, now))
            for what, window in self._windows.items()
            if (amount := getattr(asked, what))
        }


class Limits:
    """All limits of a server."""

    def __init__(self, settings: MercurySettings, clock: Clock) -> None:
        self._clock = clock
        self._enabled = settings.rate_limit_enabled
        self._seconds = settings.rate_limit_window / 1000
        self._wait = settings.rate_limit_wait / 1000
        self._each = Amounts(
            settings.rate_limit_max, settings.rate_limit_input_tokens, settings.rate_limit_output_tokens
        )
        self._everyone = Amounts(
            settings.server_limit_max, settings.server_limit_input_tokens, settings.server_limit_output_tokens
        )
        self._server = Scope("this server", self._everyone, self._seconds)
        self._clients: dict[str, Scope] = {}

    @property
    def are_on_output(self) -> bool:
        """Tell whether there is a limit on tokens of answers."""
        return self._enabled and bool(self._each.output_tokens or self._everyone.output_tokens)

    def left(self, client: str) -> dict[str, dict[str, int]]:
        """Return what is left for a client and for the whole server."""
        if not self._enabled:
            return {}
        now = self._clock.monotonic()
        return {"client": self._client(client).left(now), "server": self._server.left(now)}

    async def admit_call(self, client: str, deadline: float) -> None:
        """Let a call of a client in."""
        if self._enabled:
            await self._take(self._client(client), Amounts(1, 0, 0), deadline)

    async def admit_request(
        self, client: str, input_tokens: int, output_tokens: int, deadline: float
    ) -> list[Held]:
        """Let a request to the API out, holding room for the most that it can use."""
        if not self._enabled:
            return []
        asked = Amounts(0, input_tokens, output_tokens)
        held = [await self._take(self._client(client), asked, deadline)]
        try:
            held.append(await self._take(self._server, Amounts(1, input_tokens, output_tokens), deadline))
        except BaseException:
            self.settle(held, 0, 0)
            raise
        return held

    @staticmethod
    def settle(taken: list[Held], input_tokens: int, output_tokens: int) -> None:
        """Put what a request used in the place of what was held for it."""
        used = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        for held in taken:
            for what, amount in used.items():
                if what in held:
                    window, entry = held[what]
                    window.correct(entry, amount)

    async def _take(self, scope: Scope, asked: Amounts, deadline: float) -> Held:
        patience = min(self._clock.monotonic() + self._wait, deadline)
        while delay := scope.delay(asked, now := self._clock.monotonic()):
            if now + delay > patience:
                raise _reached(scope, delay, now)
            await asyncio.sleep(delay)
        return scope.take(asked, self._clock.monotonic())

    def _client(self, client: str) -> Scope:
        found = self._clients.get(client)
        if found is None:
            if len(self._clients) >= MOST_CLIENTS:
                now = self._clock.monotonic()
                self._clients = {name: one for name, one in self._clients.items() if not one.is_idle(now)}
            found = self._clients[client] = Scope("this client", self._each, self._seconds)
        return found


def _reached(scope: Scope, delay: float, now: float) -> MercuryError:
    left = ", ".join(f"{amount} {what.replace('_', ' ')}" for what, amount in scope.left(now).items())
    return MercuryError(
        "LOCAL_RATE_LIMIT",
        f"A rate limit of {scope.name} is reached; left now: {left}.",
        retry_after=delay,
        next_step=f"Try again in {format_seconds(delay)}, or raise the RATE_LIMIT settings.",
    )


def _impossible(name: str, what: str, amount: int, most: int) -> MercuryError:
    need = "any number of" if amount >= UNKNOWN else f"{amount:,}"
    return MercuryError(
        "OVER_RATE_LIMIT",
        f"This call can need {need} {what.replace('_', ' ')}, and {name} may use {most:,} in a window.",
    )
