"""Limits: how much each client and the whole server may ask of the API in a window of time.

Calls and tokens, as the settings have them, in sliding windows. Room is taken before a request goes out, for
the most that it may use, and corrected when it is known what it did use. A call that would pass a limit
waits, if the settings allow that, or is refused with the time at which there is room. Where there is Redis,
the windows are those of all replicas; while it is gone, each replica counts for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from bridgehead.runtime import logs
from bridgehead.runtime.stores import Step, StoreError, StoreUnavailable
from bridgehead.runtime.stores.joint import Joint
from bridgehead.runtime.stores.windows import Asked, Entry, SharedWindows, Taken, Window
from bridgehead.runtime.timing import Clock

from ..errors import MercuryError, format_seconds
from ..settings import MercurySettings
from .call import CONNECTION

MOST_CLIENTS = 10_000
_log = logs.logger("mercury.limits")


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

    def counts(self, asked: Amounts) -> bool:
        """Tell whether anything is asked of what is limited here."""
        return any(getattr(asked, what) for what in self._windows)

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
        self.shared = shared

    def take_here(self, parts: Parts) -> Room:
        """Take room as this process counts it, or tell when there is some."""
        now = self._clock.monotonic()
        for scope, asked in parts:
            if delay := scope.delay(asked, now):
                return Room(delay=delay, blocking=scope, left=scope.left(now))
        return Room([scope.take(asked, now) for scope, asked in parts])

    def latest(self, wait: float, deadline: float) -> float:
        """Return until when something waits for room that may wait for so many seconds."""
        return min(self._clock.monotonic() + wait, deadline)

    def be_patient(self, room: Room, until: float, refuse: Callable[[Room], MercuryError]) -> float:
        """Return how long to wait for room; raises where that would be too long."""
        if self._clock.monotonic() + room.delay > until:
            raise refuse(room)
        return room.delay

    def read(self, parts: Parts, taken: Taken) -> Room:
        """Return the room that was taken over all replicas, or when there is some."""
        if taken.wait:
            scope, size = parts[taken.blocking][0], len(Amounts.__struct_fields__)
            totals = taken.totals[taken.blocking * size : (taken.blocking + 1) * size]
            return Room(delay=taken.wait, blocking=scope, left=scope.left_of(totals))
        now = self._clock.monotonic()  # counted here too, for the time that Redis may be gone
        return Room([scope.take(asked, now) for scope, asked in parts], taken)

    async def left(self, scope: Scope) -> dict[str, int]:
        """Return what is left, over all replicas where they are known."""
        if self.shared is not None and scope.shared_name is not None:
            try:
                return scope.left_of(await self.shared.look(scope.ask_all(Amounts(0, 0, 0))))
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
        if room.shared is not None and self.shared is not None:
            self.shared.correct(room.shared, [used[what] for what in Amounts.__struct_fields__])


class RoomClaim:
    """Room that a call or a request needs before it may go on."""

    def __init__(
        self, turnstile: Turnstile, parts: Parts, refuse: Callable[[Room], MercuryError], wait: float = 0.0
    ) -> None:
        self._turnstile = turnstile
        self._here = [part for part in parts if part[0].shared_name is None]
        self._everywhere = [part for part in parts if part[0].shared_name is not None]
        self._refuse = refuse
        self._wait = wait
        """How many seconds it may wait for room."""
        self._until: float | None = None
        self._asked: Taken | None = None
        self.room = Room()

    def prepare(self) -> Step | None:
        """Ask for room over all replicas, where they share the limits."""
        if self._turnstile.shared is None or not self._everywhere:
            return None
        asked = [scope.ask_all(amounts) for scope, amounts in self._everywhere]
        self._asked, step = self._turnstile.shared.prepare(asked)
        return step

    def accept(self, answer: Any, deadline: float) -> float:
        """Hold the room, or say when to ask again; without Redis this process counts for itself."""
        found = self._read(answer)
        if found.blocking is None and self._here:
            here = self._turnstile.take_here(self._here)
            if here.blocking is None:
                here = Room(found.held + here.held, found.shared)
            else:
                self._turnstile.settle(found, 0, 0, 0)
            found = here
        if found.blocking is not None:
            return self._turnstile.be_patient(found, self._until_when(deadline), self._refuse)
        self.room, self._asked = found, None
        return 0.0

    def _until_when(self, deadline: float) -> float:
        if self._until is None:
            self._until = self._turnstile.latest(self._wait, deadline)
        return self._until

    def _read(self, answer: Any) -> Room:
        if answer is None or self._turnstile.shared is None or self._asked is None:
            return Room()
        if isinstance(answer, Exception):
            _log.debug("limits count in this process alone", problem=str(answer))
            return self._turnstile.take_here(self._everywhere)
        return self._turnstile.read(self._everywhere, self._turnstile.shared.read(self._asked, answer))

    def give_back(self) -> None:
        """Give the room back, where it was taken or may have been."""
        if self._asked is not None and self._turnstile.shared is not None:
            self._turnstile.shared.correct(self._asked, [0] * len(Amounts.__struct_fields__))
        self._turnstile.settle(self.room, 0, 0, 0)
        self.room, self._asked = Room(), None


class CallClaim(RoomClaim):
    """Room for a call, which counts once it was let in, whatever becomes of it."""

    def give_back(self) -> None:
        """Keep what was granted."""
        self.room = Room()
        super().give_back()


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
        self.are_on = self._enabled and any((*astuple(self._each), *astuple(self._everyone)))
        """Whether anything is limited: where nothing is, no call pays for looking."""
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
        if parts := self._parts_of_call(client):
            await self._take(parts, deadline)

    async def admit_request(
        self, client: str, input_tokens: int, output_tokens: int, deadline: float
    ) -> Room | None:
        """Let a request to the API out, holding room for the most that it can use."""
        parts = self._parts_of_request(client, input_tokens, output_tokens)
        return await self._take(parts, deadline) if parts else None

    def claim_call(self, client: str) -> CallClaim | None:
        """Return what a call of a client needs, if there is a limit on it."""
        parts = self._parts_of_call(client)
        return CallClaim(self._turnstile, parts, _reached, self._wait) if parts else None

    def claim_request(self, client: str, input_tokens: int, output_tokens: int) -> RoomClaim | None:
        """Return what a request to the API needs, if there is a limit on it."""
        parts = self._parts_of_request(client, input_tokens, output_tokens)
        return RoomClaim(self._turnstile, parts, _reached, self._wait) if parts else None

    def _parts_of_call(self, client: str) -> Parts:
        return self._parts((self._client(client), Amounts(1, 0, 0)))

    def _parts_of_request(self, client: str, input_tokens: int, output_tokens: int) -> Parts:
        return self._parts(
            (self._client(client), Amounts(0, input_tokens, output_tokens)),
            (self._server, Amounts(1, input_tokens, output_tokens)),
        )

    def _parts(self, *asked: tuple[Scope, Amounts]) -> Parts:
        """Return those in which something counts; raises where there is never room."""
        parts = [part for part in asked if self._enabled and part[0].counts(part[1])]
        for scope, amounts in parts:
            scope.check(amounts)
        return parts

    def settle(self, room: Room | None, input_tokens: int, output_tokens: int) -> None:
        """Put what a request used in the place of what was held for it."""
        if room is not None:
            self._turnstile.settle(room, input_tokens, output_tokens)

    async def _take(self, parts: Parts, deadline: float) -> Room:
        turnstile = self._turnstile
        if turnstile.shared is not None:
            claim = RoomClaim(turnstile, parts, _reached, self._wait)
            await Joint(turnstile.shared.redis, [claim]).obtain(deadline)
            return claim.room
        until = turnstile.latest(self._wait, deadline)
        while (room := turnstile.take_here(parts)).blocking is not None:
            delay = turnstile.be_patient(room, until, _reached)
            await asyncio.sleep(delay)
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


def _reached(room: Room) -> MercuryError:
    name = "" if room.blocking is None else room.blocking.name
    amounts = ", ".join(f"{amount} {what.replace('_', ' ')}" for what, amount in room.left.items())
    return MercuryError(
        "LOCAL_RATE_LIMIT",
        f"A rate limit of {name} is reached; left now: {amounts}.",
        retry_after=room.delay,
        next_step=f"Try again in {format_seconds(room.delay)}, or raise the RATE_LIMIT settings.",
    )


def _impossible(name: str, what: str, amount: int, most: int) -> MercuryError:
    need = "any number of" if amount >= UNKNOWN else f"{amount:,}"
    return MercuryError(
        "OVER_RATE_LIMIT",
        f"This call can need {need} {what.replace('_', ' ')}, and {name} may use {most:,} in a window.",
    )
