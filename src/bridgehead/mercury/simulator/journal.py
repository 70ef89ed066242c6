"""Journal: what was asked of the simulated API, and what became of each request."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from .faults import Fault


class Request:
    """One request: what it said, and when it came, was answered, finished or was given up."""

    __slots__ = (
        "aborted",
        "answered",
        "arrived",
        "chunks",
        "content",
        "fault",
        "finished",
        "method",
        "number",
        "pairs",
        "path",
        "status",
    )

    def __init__(
        self, method: str, path: str, pairs: list[tuple[bytes, bytes]], content: bytes, arrived: float
    ) -> None:
        self.number = 0
        self.method = method
        self.path = path
        self.pairs = pairs
        self.content = content
        self.arrived = arrived
        self.answered: float | None = None
        self.finished: float | None = None
        self.aborted: float | None = None
        self.status = 0
        self.chunks = 0
        self.fault: Fault | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers, their names in lower case."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self.pairs}

    @property
    def body(self) -> Any:
        """The decoded body; None where there is none."""
        return msgspec.json.decode(self.content) if self.content else None

    @property
    def key(self) -> str:
        """The bearer key; empty where there is none."""
        for name, value in self.pairs:
            if name == b"authorization":
                return value.decode("latin-1").removeprefix("Bearer ").strip()
        return ""

    def shown(self) -> dict[str, Any]:
        """Tell all of it in JSON's terms, but for the key: someone may have sent a real one by mistake."""
        names = ("number", "method", "path", "arrived", "answered", "finished", "aborted")
        return {
            **{name: getattr(self, name) for name in names},
            "headers": {
                name: "Bearer ***" if name == "authorization" else value
                for name, value in self.headers.items()
            },
            "body": msgspec.Raw(self.content or b"null"),
            "status": self.status,
            "chunks": self.chunks,
        }


class Journal:
    """The newest requests, oldest first."""

    def __init__(self, most: int) -> None:
        self._requests: deque[Request] = deque(maxlen=most)
        self._waiting: set[asyncio.Event] = set()
        self.total = 0
        """How many requests there have been, with those that are not kept any more."""

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, index: int) -> Request:
        return self._requests[index]

    def __iter__(self) -> Iterator[Request]:
        return iter(tuple(self._requests))

    def add(self, request: Request) -> None:
        """Take a request in."""
        self.total += 1
        request.number = self.total
        self._requests.append(request)
        self.changed()

    def changed(self) -> None:
        """Let those look again who wait for something."""
        for event in self._waiting:
            event.set()

    def to(self, path: str) -> list[Request]:
        """Return the requests whose path ends like this."""
        return [request for request in self._requests if request.path.endswith(path)]

    def most_at_once(self, path: str = "") -> int:
        """Return how many requests were under way at the same time, at most."""
        moments = []
        for request in self.to(path):
            end = request.finished or request.aborted or float("inf")
            moments += [(request.arrived, 1), (end, -1)]
        most = now = 0
        for _, step in sorted(moments):
            now += step
            most = max(most, now)
        return most

    async def until(self, holds: Callable[[Journal], Any], within: float = 60.0) -> None:
        """Wait until something holds, which it cannot as long as it looks at a request that is not there yet.

        Raises TimeoutError if it does not in time.
        """
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            async with asyncio.timeout(within):
                while not self._satisfies(holds):
                    event.clear()
                    await event.wait()
        finally:
            self._waiting.discard(event)

    def _satisfies(self, holds: Callable[[Journal], Any]) -> bool:
        try:
            return bool(holds(self))
        except IndexError:
            return False

    def clear(self) -> None:
        """Forget everything."""
        self._requests.clear()
