"""Rate limits: requests and tokens of a client, of the whole server and of a provider, in sliding windows.

Requests, input tokens and output tokens, as set in the settings and the routes file. A send takes its worst
case from all windows at once, and corrects it to the actual amounts afterwards. A send without room waits, if
RATE_LIMIT_WAIT_MS allows it, or is refused with the time until there is room. With Redis all replicas share
the windows; while Redis is down, each replica counts for itself.
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
SPARE_SHARE = 0.2
"""The share of a client's calls that batches leave free for its other calls."""
UNKNOWN = 2**53
"""An amount without a known bound: it never fits under a limit."""
_log = logs.logger("mercury.rate_limits")


class RateAmounts(Struct, frozen=True):
    """Requests, input tokens and output tokens; the limits or the use of them."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


THINGS = RateAmounts.__struct_fields__


class Scope:
    """The limits of one client, of the whole server, or of one provider."""

    def __init__(self, name: str, limits: RateAmounts, seconds: float, key: str, setting: str) -> None:
        self.name = name
        self.limits = limits
        self.seconds = seconds
        self.key = f"mercury:{key}"
        """The name of its windows in Redis."""
        self.setting = setting
        """The setting to raise, for messages."""
        self.windows = {
            thing: Window(limit, seconds)
            for thing, limit in zip(THINGS, astuple(limits), strict=True)
            if limit
        }

    def left(self, now: float) -> dict[str, int]:
        """Return the rest of each limit, by this process's count."""
        return {thing: int(window.left(now)) for thing, window in self.windows.items()}

    def left_of(self, totals: Sequence[int]) -> dict[str, int]:
        """Return the rest of each limit, by the totals of all replicas."""
        taken = dict(zip(THINGS, totals, strict=True))
        return {thing: max(0, window.limit - taken[thing]) for thing, window in self.windows.items()}

    def is_idle(self, now: float) -> bool:
        """Return whether all windows are empty."""
        return all(window.is_idle(now) for window in self.windows.values())

    def find_windows(self, amounts: RateAmounts) -> list[tuple[str, Window, int]]:
        """Return the windows that the amounts count in, each with its amount.

        Raise if an amount exceeds a whole limit, so that waiting would not help.
        """
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

    def ask_redis(self, amounts: RateAmounts) -> Asked:
        """Return the request to the shared windows; amounts without a limit are not counted."""
        limits = astuple(self.limits)
        asked = [amount if limit else 0 for amount, limit in zip(astuple(amounts), limits, strict=True)]
        return Asked(self.key, self.seconds, limits, asked)


class WindowEntries(Struct):
    """The amounts that one send has taken: in this process's windows and in Redis."""

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
        self._each = RateAmounts(
            settings.rate_limit_max, settings.rate_limit_input_tokens, settings.rate_limit_output_tokens
        )
        everyone = RateAmounts(
            settings.server_limit_max, settings.server_limit_input_tokens, settings.server_limit_output_tokens
        )
        self.is_on = self._enabled and any((*astuple(self._each), *astuple(everyone)))
        self.needs_output_length = self._enabled and bool(self._each.output_tokens or everyone.output_tokens)
        """Whether the longest possible answer has to be known before a send."""
        self._server = Scope("this server", everyone, self._seconds, "server", "the RATE_LIMIT settings")
        self._clients: dict[tuple[str, bool], Scope] = {}
        """By account; True for the smaller share that batches may use."""
        self._process = secrets.token_hex(4)
        """Part of the Redis keys of connections, whose ids other replicas may use too."""

    async def take(
        self,
        account: str,
        provider: Scope | None,
        *,
        is_first: bool,
        is_patient: bool = False,
        input_tokens: int,
        output_tokens: int | None,
        deadline: float,
    ) -> WindowEntries | None:
        """Take the worst case of one send; None if nothing is limited.

        A client's limit counts calls, so only the first send of a call counts; those of the server and the
        provider count all sends. Patient sends (batches) leave `SPARE_SHARE` of the client's calls free.
        """
        output = UNKNOWN if output_tokens is None else output_tokens
        asked: list[tuple[Scope, RateAmounts]] = []
        if self.is_on:
            asked += (
                (self._client(account), RateAmounts(int(is_first), input_tokens, output)),
                (self._server, RateAmounts(1, input_tokens, output)),
            )
            if is_patient:
                asked.append((self._client(account, is_patient=True), RateAmounts(int(is_first))))
        if provider is not None:
            asked.append((provider, RateAmounts(1)))
        parts: list[tuple[Scope, RateAmounts, list[tuple[str, Window, int]]]] = []
        for scope, amounts in asked:
            # Scopes without a matching limit are left out: they must not cost a round trip to Redis.
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
                # As in the Redis script: of several limits that block, the one with the longest wait is
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
                # Count in this process too, so that the windows are right if Redis fails.
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
            await asyncio.sleep(delay)  # then retry: another call may have taken the room

    def correct(
        self, entries: WindowEntries | None, input_tokens: int | None, output_tokens: int | None
    ) -> None:
        """Replace the tokens taken by those used, unless they are not known. The count of requests stays."""
        if entries is None or input_tokens is None:
            return
        used = {"requests": None, "input_tokens": input_tokens, "output_tokens": output_tokens}
        for thing, window, entry in entries.local:
            if (amount := used[thing]) is not None:
                window.correct(entry, amount)
        if entries.shared is not None and self._shared is not None:
            self._shared.correct(entries.shared, list(used.values()))

    async def left(self, account: str) -> dict[str, dict[str, int]]:
        """Return the rest of the limits of a client and of the whole server."""
        if not self._enabled:
            return {}
        return {"client": await self._left(self._client(account)), "server": await self._left(self._server)}

    async def _left(self, scope: Scope) -> dict[str, int]:
        if self._shared is not None:
            try:
                return scope.left_of(await self._shared.look(scope.ask_redis(RateAmounts())))
            except (StoreUnavailable, StoreError):
                pass
        return scope.left(self._clock.monotonic())

    def _client(self, account: str, *, is_patient: bool = False) -> Scope:
        scope = self._clients.get((account, is_patient))
        if scope is None:
            # Drop clients with empty windows: they are recreated without loss.
            if len(self._clients) >= MAX_CLIENTS:
                now = self._clock.monotonic()
                self._clients = {
                    name: client for name, client in self._clients.items() if not client.is_idle(now)
                }
            key = (
                f"client:{self._process}:{account}" if account.startswith(CONNECTION) else f"client:{account}"
            )
            name, limits = "this client", self._each
            if is_patient:
                limit = limits.requests
                name, key, limits = "batches", f"{key}:batch", RateAmounts(limit - int(limit * SPARE_SHARE))
            scope = Scope(name, limits, self._seconds, key, "the RATE_LIMIT settings")
            self._clients[account, is_patient] = scope
        return scope
