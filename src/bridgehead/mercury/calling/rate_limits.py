"""Rate limits: how much a client, the whole server and a provider may ask of the API in a sliding window.

Requests, input tokens and output tokens, as the settings and the routes file have them. Room for a send is
taken in all windows at once, for the most it can use, and corrected when it is known what it used. A send for
which there is no room waits, if RATE_LIMIT_WAIT_MS allows it, or is refused with the time at which there is
room. With Redis the windows are those of all replicas; while Redis is away, each replica counts for itself.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import astuple

from bridgehead.runtime import logs
from bridgehead.runtime.stores import StoreError, StoreUnavailable
from bridgehead.runtime.stores.rate_windows import Asked, Entry, SharedWindows, Taken, Window
from bridgehead.runtime.timing import Clock

from ..errors import MercuryError, format_seconds
from ..settings import MercurySettings
from .call import CONNECTION

MAX_CLIENTS = 10_000
UNKNOWN = 2**53
"""An amount with no known bound: under a limit there is never room for it."""
_log = logs.logger("mercury.rate_limits")


class Amounts(Struct, frozen=True):
    """How much of each thing that is limited."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


THINGS = Amounts.__struct_fields__


class Scope:
    """The limits of one client, of the whole server, or of one provider."""

    def __init__(self, name: str, limits: Amounts, seconds: float, key: str, setting: str) -> None:
        self.name = name
        self.limits = limits
        self.seconds = seconds
        self.key = f"mercury:{key}"
        """Its name in Redis."""
        self.setting = setting
        """What to raise to get more."""
        self.windows = {
            thing: Window(limit, seconds)
            for thing, limit in zip(THINGS, astuple(limits), strict=True)
            if limit
        }

    def left(self, now: float) -> dict[str, int]:
        """Return what is left of each limit, as this process counts."""
        return {thing: int(window.left(now)) for thing, window in self.windows.items()}

    def left_of(self, totals: Sequence[int]) -> dict[str, int]:
        """Return what is left of each limit, given what all replicas have taken."""
        taken = dict(zip(THINGS, totals, strict=True))
        return {thing: max(0, window.limit - taken[thing]) for thing, window in self.windows.items()}

    def is_idle(self, now: float) -> bool:
        """Tell whether nothing was asked for lately."""
        return all(window.is_idle(now) for window in self.windows.values())

    def find_windows(self, amounts: Amounts) -> list[tuple[str, Window, int]]:
        """Return the windows in which something is asked for, and how much; raise if it never fits."""
        asked = []
        for thing, window in self.windows.items():
            amount = getattr(amounts, thing)
            if amount:
                asked.append((thing, window, amount))
            if amount > window.limit:
                need = "any number of" if amount >= UNKNOWN else f"{amount:,}"
                raise MercuryError(
                    "OVER_RATE_LIMIT",
                    f"This call can need {need} {thing.replace('_', ' ')}, and {self.name} may use "
                    f"{window.limit:,} in a window.",
                )
        return asked

    def ask_redis(self, amounts: Amounts) -> Asked:
        """Word it for the windows of all replicas; what is not limited is not counted."""
        limits = astuple(self.limits)
        asked = [amount if limit else 0 for amount, limit in zip(astuple(amounts), limits, strict=True)]
        return Asked(self.key, self.seconds, limits, asked)


class WindowEntries(Struct):
    """What one send has taken in the windows: of this process, and in Redis."""

    local: list[tuple[str, Window, Entry]]
    shared: Taken | None = None


class RateLimits:
    """All limits of a server."""

    def __init__(self, settings: MercurySettings, clock: Clock, shared: SharedWindows | None = None) -> None:
        self._clock = clock
        self._shared = shared
        self._enabled = settings.rate_limit_enabled
        self._seconds = settings.rate_limit_window / 1000
        self._wait = settings.rate_limit_wait / 1000
        self._each = Amounts(
            settings.rate_limit_max, settings.rate_limit_input_tokens, settings.rate_limit_output_tokens
        )
        everyone = Amounts(
            settings.server_limit_max, settings.server_limit_input_tokens, settings.server_limit_output_tokens
        )
        self.is_on = self._enabled and any((*astuple(self._each), *astuple(everyone)))
        self.needs_output_length = self._enabled and bool(self._each.output_tokens or everyone.output_tokens)
        """Whether the longest possible answer has to be known before a send."""
        self._server = Scope("this server", everyone, self._seconds, "server", "the RATE_LIMIT settings")
        self._clients: dict[str, Scope] = {}
        self._process = secrets.token_hex(4)
        """Tells the connections of this process from those of other replicas, which may have the same ids."""

    async def take(
        self,
        account: str,
        provider: Scope | None,
        *,
        is_first: bool,
        input_tokens: int,
        output_tokens: int | None,
        deadline: float,
    ) -> WindowEntries | None:
        """Take room for one send, for the most that it can use; None if nothing is limited.

        A client's requests are its calls, so only the first send of a call counts as one; the server's and
        the provider's are all sends.
        """
        output = UNKNOWN if output_tokens is None else output_tokens
        asked: list[tuple[Scope, Amounts]] = []
        if self.is_on:
            asked += (
                (self._client(account), Amounts(int(is_first), input_tokens, output)),
                (self._server, Amounts(1, input_tokens, output)),
            )
        if provider is not None:
            asked.append((provider, Amounts(1)))
        parts: list[tuple[Scope, Amounts, list[tuple[str, Window, int]]]] = []
        for scope, amounts in asked:
            # A limit of which nothing is asked is not in the way, and must not cost a trip to Redis.
            if scope.windows and (windows := scope.find_windows(amounts)):
                parts.append((scope, amounts, windows))
        if not parts:
            return None
        until = min(self._clock.monotonic() + self._wait, deadline)
        while True:
            taken: Taken | None = None
            if self._shared is not None:
                try:
                    taken = await self._shared.take([scope.ask_redis(amounts) for scope, amounts, _ in parts])
                except (StoreUnavailable, StoreError) as problem:
                    _log.debug("rate limits count in this process alone", problem=str(problem))
            now, delay, left = self._clock.monotonic(), 0.0, dict[str, int]()
            if taken is None:
                # As the script of Redis does it: of several limits in the way, the one that takes longest is
                # reported.
                for part, _, windows in parts:
                    for _thing, window, amount in windows:
                        wait = window.delay(amount, now)
                        if wait > delay:
                            delay, scope = wait, part
                if delay:
                    left = scope.left(now)
            elif taken.wait:
                delay, scope, size = taken.wait, parts[taken.blocking][0], len(THINGS)
                left = scope.left_of(taken.totals[taken.blocking * size : (taken.blocking + 1) * size])
            if not delay:
                # Counted here in any case, for the time that Redis may be away.
                entries = WindowEntries([], taken)
                for _, _, windows in parts:
                    for thing, window, amount in windows:
                        entries.local.append((thing, window, window.take(amount, now)))
                return entries
            if self._clock.monotonic() + delay > until:
                words = ", ".join(f"{amount} {thing.replace('_', ' ')}" for thing, amount in left.items())
                raise MercuryError(
                    "LOCAL_RATE_LIMIT",
                    f"A rate limit of {scope.name} is reached; left now: {words}.",
                    retry_after=delay,
                    next_step=f"Try again in {format_seconds(delay)}, or raise {scope.setting}.",
                )
            await asyncio.sleep(delay)

    def correct(self, entries: WindowEntries | None, input_tokens: int, output_tokens: int) -> None:
        """Replace the tokens that were taken by those that were used. A request stays a request."""
        if entries is None:
            return
        used = {"requests": None, "input_tokens": input_tokens, "output_tokens": output_tokens}
        for thing, window, entry in entries.local:
            if (amount := used[thing]) is not None:
                window.correct(entry, amount)
        if entries.shared is not None and self._shared is not None:
            self._shared.correct(entries.shared, list(used.values()))

    async def left(self, account: str) -> dict[str, dict[str, int]]:
        """Return what is left for a client and for the whole server."""
        if not self._enabled:
            return {}
        return {"client": await self._left(self._client(account)), "server": await self._left(self._server)}

    async def _left(self, scope: Scope) -> dict[str, int]:
        if self._shared is not None:
            try:
                return scope.left_of(await self._shared.look(scope.ask_redis(Amounts())))
            except (StoreUnavailable, StoreError):
                pass
        return scope.left(self._clock.monotonic())

    def _client(self, account: str) -> Scope:
        scope = self._clients.get(account)
        if scope is None:
            if len(self._clients) >= MAX_CLIENTS:
                now = self._clock.monotonic()
                self._clients = {name: one for name, one in self._clients.items() if not one.is_idle(now)}
            key = (
                f"client:{self._process}:{account}" if account.startswith(CONNECTION) else f"client:{account}"
            )
            scope = Scope("this client", self._each, self._seconds, key, "the RATE_LIMIT settings")
            self._clients[account] = scope
        return scope
