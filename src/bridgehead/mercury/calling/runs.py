"""Runs: answers that are being refined, with their states so far, for the diffusion page.

Only calls of hosts that show apps are kept, for a page that does not receive progress notifications itself.
Bounded: a few runs, a few states of each, the older ones thinned out. Nothing here outlives the process.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable
from typing import Literal

from bridgehead.runtime.timing import Clock

from ..completion import Completion
from ..errors import MercuryError

MAX_RUNS = 32
MAX_STATES = 64
MAX_STATE_CHARACTERS = 400_000
"""Limit for all states of a run together."""

Status = Literal["running", "done", "cancelled", "failed"]


class Run:
    """One answer that is being refined."""

    def __init__(self, name: str, owner: str, about: str, clock: Clock) -> None:
        self.name = name
        self.owner = owner
        """The account of the call; only this account finds the run."""
        self.about = about
        """The message that it answers."""
        self.status: Status = "running"
        self.problem = ""
        self.completion: Completion | None = None
        self.states: list[tuple[int, str]] = []
        """Milliseconds since the start, and the text at that time."""
        self.count = 0
        """The number of all states, also those dropped since."""
        self._clock = clock
        self._began = clock.monotonic()
        self._work: asyncio.Task[Completion] | None = None
        self._changed = asyncio.Event()

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the start."""
        return round((self._clock.monotonic() - self._began) * 1000)

    def add_state(self, text: str) -> None:
        """Add a state; if there are too many, drop every second of the earlier ones."""
        self.count += 1
        self.states.append((self.elapsed_ms, text))
        if len(self.states) > MAX_STATES or len(self.states) * len(text) > MAX_STATE_CHARACTERS:
            # The newest one always stays: it is the text that the page shows.
            self.states = [*self.states[:-1:2], self.states[-1]]
        self._changed.set()

    async def watch(self, work: Awaitable[Completion]) -> Completion:
        """Await the work, which `cancel` can stop; raises `MercuryError` if it was stopped."""
        self._work = asyncio.ensure_future(work)
        try:
            self.completion = await self._work
        except asyncio.CancelledError:
            if self.status != "cancelled":  # the caller's own call was cancelled, and the work with it
                self._end("cancelled")
                self._work.cancel()
                raise
            last = self.states[-1][1] if self.states else ""
            raise MercuryError("STOPPED", "The user stopped the answer.", content=last) from None
        except MercuryError as error:
            self.problem = error.message
            self._end("failed")
            raise
        self._end("done")
        return self.completion

    def _end(self, status: Status) -> None:
        self.status = status
        self._changed.set()

    def cancel(self) -> None:
        """Stop the run and its request to the API; a run that has ended is not changed."""
        if self.status == "running":
            self._end("cancelled")
            if self._work is not None:
                self._work.cancel()

    async def wait_for_news(self, after: int, seconds: float) -> None:
        """Wait until there are more than `after` states or the run has ended, up to `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while self.status == "running" and self.count <= after:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return


class Runs:
    """The newest runs of all callers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs: dict[str, Run] = {}

    def begin(self, owner: str, about: str) -> Run:
        """Begin a run; beyond the limit the oldest ended one is dropped."""
        run = Run(secrets.token_hex(8), owner, about, self._clock)
        self._runs[run.name] = run
        while len(self._runs) > MAX_RUNS:
            ended = (name for name, run in self._runs.items() if run.status != "running")
            del self._runs[next(ended, next(iter(self._runs)))]
        return run

    def find(self, owner: str, name: str | None, about: str | None) -> Run | None:
        """Find an owner's run by its name or, without a name, the newest one that answers this message."""
        for run in reversed(self._runs.values()):
            if run.owner == owner and (run.name == name or (name is None and run.about == about)):
                return run
        return None
