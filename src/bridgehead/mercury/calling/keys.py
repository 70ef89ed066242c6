"""Keys: the API keys of this server, and the choice of one.

A key that the service refuses cools down for a while, if there is another one. Keys in a file are read again
when the file changes. Every key is registered as a secret: neither the log nor an error shows it.
"""

from __future__ import annotations

import re

from bridgehead.runtime import durable, logs
from bridgehead.runtime.timing import Clock

from ..errors import MercuryError
from ..settings import KEYS, MercurySettings

COOLDOWN_SECONDS = {401: 3600.0, 402: 600.0, 429: 60.0}
"""The cool-down of a key after each status, unless the service sends Retry-After."""

SHORTEST_SECRET = 8
"""A shorter key (`EMPTY`, `ollama`) may occur in any text, so it is hidden only where it is a credential."""
_PLACEHOLDER = re.compile(r"(?i)(^|[-_ ])your([-_ ]|$)|placeholder|change[-_]?me|replace[-_]|x{4,}")
"""What documents and .env files write in place of a key: `sk_your_key`, `sk-xxxx`."""
_NEVER_READ = (-1, -1)
KEY_PAGE = " (keys are made at platform.inceptionlabs.ai)"
_log = logs.logger("mercury.keys")


class Keys:
    """The keys and their cool-downs."""

    def __init__(
        self,
        settings: MercurySettings,
        clock: Clock,
        variable: str = "MERCURY_API_KEY",
    ) -> None:
        self._clock = clock
        self._variable = variable
        """The environment variable that has the keys, for messages."""
        self._file = settings.api_key_file
        self._stamp = _NEVER_READ
        self._until: dict[str, float] = {}
        """The end of each key's cool-down, in the order of the configured keys."""
        self._set_keys(settings.api_keys)

    @property
    def count(self) -> int:
        """The number of keys."""
        self._refresh()
        return len(self._until)

    @property
    def has_placeholder(self) -> bool:
        """Whether a key was copied from a document."""
        self._refresh()
        return any(map(_PLACEHOLDER.search, self._until))

    def pick(self) -> str:
        """Return the first usable key, or the one whose cool-down ends first."""
        if self._file is not None:
            self._refresh()
        if not self._until:
            file = self._file
            where = f"into the file {file}" if file else f"in the server's environment as {self._variable}"
            is_mercury = self._variable == "MERCURY_API_KEY"
            raise MercuryError(
                "MISSING_API_KEY",
                f"There is no API key for {'Mercury' if is_mercury else 'a provider of the routes file'}.",
                next_step=f"Put a key {where}{KEY_PAGE if is_mercury else ''}"
                f"{'' if file else ', restart the server,'} and check it with `bridgehead mercury doctor`.",
            )
        if len(self._until) == 1:  # an only key never cools down
            return next(iter(self._until))
        # Usable keys count as 0, and `min` returns the first of equals.
        now = self._clock.monotonic()
        return min(self._until, key=lambda key: max(0.0, self._until[key] - now))

    def find_other(self, tried: set[str]) -> str | None:
        """Return a key that was not tried and is not cooling down; None if there is none."""
        now = self._clock.monotonic()
        return next((key for key, until in self._until.items() if key not in tried and until <= now), None)

    def cool_down(self, key: str, status: int, seconds: float | None) -> None:
        """Use other keys for a while; a single key stays in use."""
        if len(self._until) > 1 and key in self._until:
            wait = COOLDOWN_SECONDS[status] if seconds is None else seconds
            self._until[key] = self._clock.monotonic() + wait
            _log.warn("key cools down", key=list(self._until).index(key) + 1, status=status, seconds=wait)

    def _set_keys(self, keys: tuple[str, ...]) -> None:
        for number, key in enumerate(keys, 1):
            hide_key(key)
            if len(key) < SHORTEST_SECRET:
                _log.warn(
                    "short API key: it is hidden only where it stands as a credential",
                    key=number,
                    next_step="use a longer one unless the server takes any key",
                )
        self._until = {key: self._until.get(key, 0.0) for key in keys}

    def _refresh(self) -> None:
        """Read the file again if it has changed; after a failure the known keys stay."""
        if self._file is None:
            return
        try:
            status = self._file.stat()
            stamp = status.st_mtime_ns, status.st_size
        except OSError:  # a missing file gets a stamp too, so that this is logged once
            stamp = 0, 0
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._set_keys(KEYS.parse(durable.read(self._file).decode("utf-8-sig")))
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else f"it must hold {KEYS.wanted}"
            _log.warn("key file not usable", file=str(self._file), reason=reason)
        else:
            _log.info("keys read", file=str(self._file), keys=len(self._until))


def hide_key(key: str) -> None:
    """Mask a key in logs; a short one only where it is used as a credential."""
    if len(key) >= SHORTEST_SECRET:
        logs.hide(key)
    else:
        logs.hide_credential(key)
