"""Limits: how much each client and the whole server may ask of the API in a window of time.

Calls and tokens, as the settings have them, in sliding windows. Room is taken before a request goes out, for
the most that it may use, and corrected when it is known what it did use. A call that would pass a limit
waits, if the settings allow that, or is refused with the time at which there is room. Where there is Redis,
the windows are those of all replicas; while it is gone, each replica counts for itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.stores import StoreError, StoreUnavailable
from bridgehead.runtime.stores.windows import Asked, SharedWindows, Taken
from bridgehead.runtime.timing import Clock

from ..errors import MercuryError, format_seconds
from ..settings import MercurySettings
from .call import CONNECTION

MOST_CLIENTS = 10_000
_log = logs.logger("mercury.limits")

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


_NO_LIMIT = Amounts(0, 0, 0)

Held = dict[str, tuple[Window, Entry]]
"""Room that is held, by what it is held of."""
UNKNOWN = 2**53
"""Stands for an amount that has no known end; where it is limited, there is never room for it."""


class Scope:
    """The limits of one client, of the whole server, or of a provider."""

    def __init__(self, name: str, most: Amounts, seconds: float, shared_name: str | None = None) -> None:
        self.name = name
        self.most = most
        self.shared_name = shared_name
        """What all replicas know it by; None where only this process can meet it."""
        self._windows = {
            what: Window(limit, seconds)
            for what in Amounts.__struct_fields__
            if (limit := getattr(most, what))
        }

    def left(self, now: float) -> dict[str, int]:
        """Return what is left of each limit there is."""
        return {what: int(window.left(now)) for what, window in self._windows.items()}

    def left_of(self, totals: Sequence[int]) -> dict[str, int]:
        """Return what is left of each limit, by what all replicas have taken."""
        taken = dict(zip(Amounts.__struct_fields__, totals, strict=True))
        return {what: max(0, window.most - taken[what]) for what, window in self._windows.items()}

    def is_idle(self, now: float) -> bool:
        """Tell whether nothing was asked for lately."""
        return all(window.is_idle(now) for window in self._windows.values())

    def check(self, asked: Amounts) -> None:
        """Raise where there is never room."""
        for what, window in self._windows.items():
            amount = getattr(asked, what)
            if amount > window.most:
                raise _impossible(self.name, what, amount, window.most)

    def delay(self, asked: Amounts, now: float) -> float:
        """Return the seconds until there is room."""
        delays = [window.delay(getattr(asked, what), now) for what, window in self._windows.items()]
        return max(delays, default=0.0)

    def take(self, asked: Amounts, now: float) -> Held:
        """Hold room for what is asked for."""
        return {
            what: (window, window.take(amount, now))
            for what, window in self._windows.items()
            if (amount := getattr(asked, what))
        }

    def ask_all(self, asked: Amounts) -> Asked:
        """Word it for the windows of all replicas; what is not limited is not counted."""
        most = [getattr(self.most, what) for what in Amounts.__struct_fields__]
        amounts = [
            getattr(asked, what) if limit else 0
            for what, limit in zip(Amounts.__struct_fields__, most, strict=True)
        ]
        return Asked(f"mercury:{self.shared_name}", most, amounts)


class Room(Struct):
    """Room that was taken, here and over all replicas; or when there is some."""

    held: list[Held] = []
    shared: Taken | None = None
    delay: float = 0.0
    blocking: Scope | None = None
    left: dict[str, int] = {}
    """What is left of the scope that is in the way."""


Parts = Sequence[tuple[Scope, Amounts]]


class Turnstile:
    """Takes room in several scopes at once, in all of them or in none."""

    def __init__(self, clock: Clock, shared: SharedWindows | None = None) -> None:
        self._clock = clock
        self._shared = shared

    async def take(self, parts: Parts) -> Room:
        """Take room, or tell when there is some."""
        if self._shared is None:
            return self._take_here(parts)
        shared = [part for part in parts if part[0].shared_name is not None]
        room = self._take_here([part for part in parts if part[0].shared_name is None])
        if room.delay or not shared:
            return room
        try:
            found = await self._take_everywhere(self._shared, shared)
        except (StoreUnavailable, StoreError) as problem:
            _log.debug("limits count in this process alone", problem=str(problem))
            found = self._take_here(shared)
        except BaseException:
            self.settle(room, 0, 0, 0)
            raise
        if found.delay:
            self.settle(room, 0, 0, 0)
            return found
        return Room(room.held + found.held, found.shared)

    def _take_here(self, parts: Parts) -> Room:
        now = self._clock.monotonic()
        for scope, asked in parts:
            if delay := scope.delay(asked, now):
                return Room(delay=delay, blocking=scope, left=scope.left(now))
        return Room([scope.take(asked, now) for scope, asked in parts])

    async def _take_everywhere(self, windows: SharedWindows, parts: Parts) -> Room:
        taken = await windows.take([scope.ask_all(asked) for scope, asked in parts])
        if taken.wait:
            scope, size = parts[taken.blocking][0], len(Amounts.__struct_fields__)
            totals = taken.totals[taken.blocking * size : (taken.blocking + 1) * size]
            return Room(delay=taken.wait, blocking=scope, left=scope.left_of(totals))
        now = self._clock.monotonic()  # counted here too, for the time that Redis may be gone
        return Room([scope.take(asked, now) for scope, asked in parts], taken)

    async def left(self, scope: Scope) -> dict[str, int]:
        """Return what is left, over all replicas where they are known."""
        if self._shared is not None and scope.shared_name is not None:
            try:
                return scope.left_of(await self._shared.look(scope.ask_all(Amounts(0, 0, 0))))
            except (StoreUnavailable, StoreError):
                pass
        return scope.left(self._clock.monotonic())

    def settle(self, room: Room, input_tokens: int, output_tokens: int, requests: int | None = None) -> None:
        """Put what was used in the place of what was held; None leaves the requests as they are."""
        used = {"requests": requests, "input_tokens": input_tokens, "output_tokens": output_tokens}
        for held in room.held:
            for what, (window, entry) in held.items():
                amount = used[what]
                if amount is not None:
                    window.correct(entry, amount)
        if room.shared is not None and self._shared is not None:
            self._shared.correct(room.shared, [used[what] for what in Amounts.__struct_fields__])


class Limits:
    """All limits of a server."""

    def __init__(self, settings: MercurySettings, clock: Clock, shared: SharedWindows | None = None) -> None:
        self._clock = clock
        self._turnstile = Turnstile(clock, shared)
        self._enabled = settings.rate_limit_enabled
        self._seconds = settings.rate_limit_window / 1000
        self._wait = settings.rate_limit_wait / 1000
        self._each = Amounts(
            settings.rate_limit_max, settings.rate_limit_input_tokens, settings.rate_limit_output_tokens
        )
        self._everyone = Amounts(
            settings.server_limit_max, settings.server_limit_input_tokens, settings.server_limit_output_tokens
        )
        self._server = Scope("this server", self._everyone, self._seconds, "server")
        self._clients: dict[str, Scope] = {}

    @property
    def are_on_output(self) -> bool:
        """Tell whether there is a limit on tokens of answers."""
        return self._enabled and bool(self._each.output_tokens or self._everyone.output_tokens)

    async def left(self, client: str) -> dict[str, dict[str, int]]:
        """Return what is left for a client and for the whole server."""
        if not self._enabled:
            return {}
        return {
            "client": await self._turnstile.left(self._client(client)),
            "server": await self._turnstile.left(self._server),
        }

    async def admit_call(self, client: str, deadline: float) -> None:
        """Let a call of a client in."""
        if self._enabled and self._each != _NO_LIMIT:
            await self._take([(self._client(client), Amounts(1, 0, 0))], deadline)

    async def admit_request(
        self, client: str, input_tokens: int, output_tokens: int, deadline: float
    ) -> Room | None:
        """Let a request to the API out, holding room for the most that it can use."""
        if not self._enabled or (self._each == _NO_LIMIT and self._everyone == _NO_LIMIT):
            return None
        parts = [
            (self._client(client), Amounts(0, input_tokens, output_tokens)),
            (self._server, Amounts(1, input_tokens, output_tokens)),
        ]
        return await self._take(parts, deadline)

    def settle(self, room: Room | None, input_tokens: int, output_tokens: int) -> None:
        """Put what a request used in the place of what was held for it."""
        if room is not None:
            self._turnstile.settle(room, input_tokens, output_tokens)

    async def _take(self, parts: Parts, deadline: float) -> Room:
        patience = min(self._clock.monotonic() + self._wait, deadline)
        for scope, asked in parts:
            scope.check(asked)
        while (room := await self._turnstile.take(parts)).blocking is not None:
            if self._clock.monotonic() + room.delay > patience:
                raise _reached(room.blocking.name, room.delay, room.left)
            await asyncio.sleep(room.delay)
        return room

    def _client(self, client: str) -> Scope:
        found = self._clients.get(client)
        if found is None:
            if len(self._clients) >= MOST_CLIENTS:
                now = self._clock.monotonic()
                self._clients = {name: one for name, one in self._clients.items() if not one.is_idle(now)}
            shared_name = None if client.startswith(CONNECTION) else f"client:{client}"
            found = self._clients[client] = Scope("this client", self._each, self._seconds, shared_name)
        return found


def _reached(name: str, delay: float, left: dict[str, int]) -> MercuryError:
    amounts = ", ".join(f"{amount} {what.replace('_', ' ')}" for what, amount in left.items())
    return MercuryError(
        "LOCAL_RATE_LIMIT",
        f"A rate limit of {name} is reached; left now: {amounts}.",
        retry_after=delay,
        next_step=f"Try again in {format_seconds(delay)}, or raise the RATE_LIMIT settings.",
    )


def _impossible(name: str, what: str, amount: int, most: int) -> MercuryError:
    need = "any number of" if amount >= UNKNOWN else f"{amount:,}"
    return MercuryError(
        "OVER_RATE_LIMIT",
        f"This call can need {need} {what.replace('_', ' ')}, and {name} may use {most:,} in a window.",
    )
