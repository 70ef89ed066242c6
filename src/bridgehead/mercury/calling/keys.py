"""Keys: the API keys of this server, and which of them to use.

A key that the service refuses is put aside for a while, as long as there is another one. Keys that come from
a file are read again when the file changes. Every key is made known as hidden, so that neither the log nor an
error can show it.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

from bridgehead.runtime import durable, logs
from bridgehead.runtime.timing import Clock

from ..errors import MercuryError
from ..settings import KEYS, MercurySettings

if TYPE_CHECKING:
    from pathlib import Path

ASIDE_SECONDS = {401: 3600.0, 402: 600.0, 429: 60.0}
"""For how long a key is put aside after each status, where the service does not say."""

SHORTEST_SECRET = 8
"""Characters from which on a key is hidden wherever it stands; a shorter one may be part of any text."""
_NEVER_READ = (-1, -1)
_log = logs.logger("mercury.keys")


class Keys:
    """The keys, and until when each is put aside."""

    def __init__(
        self, settings: MercurySettings, clock: Clock, on_aside: Callable[[str, float], None]
    ) -> None:
        self._clock = clock
        self._file = settings.api_key_file
        self._stamp = _NEVER_READ
        self._aside: dict[str, float] = {}
        """By key, the time until which it is not used; in the order in which they were given."""
        self._on_aside = on_aside
        """Hears which key is put aside, by the name that other replicas know it by, and for how long."""
        self._take(settings.api_keys)

    @property
    def count(self) -> int:
        """How many keys there are."""
        self._refresh()
        return len(self._aside)

    def pick(self) -> str:
        """Return the first usable key, or the one whose cool-down ends first."""
        if self._file is not None:
            self._refresh()
        if not self._aside:
            raise _missing(self._file)
        if len(self._aside) == 1:  # an only key is never put aside
            return next(iter(self._aside))
        now = self._clock.monotonic()
        return min(self._aside, key=lambda key: max(0.0, self._aside[key] - now))

    def find_other(self, tried: set[str]) -> str | None:
        """Return a key that was not tried and is not put aside, if there is one."""
        now = self._clock.monotonic()
        return next((key for key, until in self._aside.items() if key not in tried and until <= now), None)

    def put_aside(self, key: str, status: int, seconds: float | None) -> None:
        """Use other keys for a while; an only key stays in use."""
        if len(self._aside) > 1 and key in self._aside:
            wait = ASIDE_SECONDS[status] if seconds is None else seconds
            self._aside[key] = self._clock.monotonic() + wait
            _log.warn("key put aside", key=list(self._aside).index(key) + 1, status=status, seconds=wait)
            self._on_aside(name_key(key), wait)

    @property
    def names(self) -> list[str]:
        """What other replicas know the keys by."""
        return list(map(name_key, self._aside))

    def follow(self, name: str, seconds: float) -> None:
        """Put a key aside because another replica did; an only key stays in use."""
        for key in self._aside if len(self._aside) > 1 else ():
            if name_key(key) == name:
                self._aside[key] = max(self._aside[key], self._clock.monotonic() + seconds)
                number = list(self._aside).index(key) + 1
                _log.info("key put aside, as another replica does", key=number, seconds=seconds)

    def _take(self, keys: tuple[str, ...]) -> None:
        for number, key in enumerate(keys, 1):
            if len(key) >= SHORTEST_SECRET:
                logs.hide(key)
            else:
                logs.hide_credential(key)
                _log.warn(
                    "short API key: it is hidden only where it stands as a credential",
                    key=number,
                    next_step="use a longer one unless the server takes any key",
                )
        self._aside = {key: self._aside.get(key, 0.0) for key in keys}

    def _refresh(self) -> None:
        """Read the file again if it is another one than before; what cannot be read changes nothing."""
        if self._file is None:
            return
        stamp = _stamp(self._file)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._take(KEYS.parse(durable.read(self._file).decode("utf-8-sig")))
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else f"it must hold {KEYS.wanted}"
            _log.warn("key file not usable", file=str(self._file), reason=reason)
        else:
            _log.info("keys read", file=str(self._file), keys=len(self._aside))


def name_key(key: str) -> str:
    """Return what replicas call a key among themselves: enough to tell keys apart, and not the key."""
    return sha256(b"bridgehead key " + key.encode()).hexdigest()[:16]


def _stamp(file: Path) -> tuple[int, int]:
    """Tell one content of a file from another; one that is not there has a stamp too."""
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _missing(file: Path | None) -> MercuryError:
    where = f"into the file {file}" if file is not None else "in the server's environment as MERCURY_API_KEY"
    return MercuryError(
        "MISSING_API_KEY",
        "There is no API key for Mercury.",
        next_step=f"Put a key {where} (keys are made at platform.inceptionlabs.ai), restart the server if it "
        "is in the environment, and check it with `bridgehead mercury doctor`.",
    )
