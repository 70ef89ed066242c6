"""Journal: the requests to the simulated API and what happened to each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

from .faults import Fault


class ReceivedRequest:
    """One request, and when it arrived, was answered, finished or was abandoned (`time.monotonic`)."""

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
        """The decoded body; None if it is empty."""
        return msgspec.json.decode(self.content) if self.content else None

    @property
    def key(self) -> str:
        """The bearer key; empty if there is none."""
        for name, value in self.pairs:
            if name == b"authorization":
                return value.decode("latin-1").removeprefix("Bearer ").strip()
        return ""

    def shown(self) -> dict[str, Any]:
        """Return the request for JSON, without the key: it may be a real one, sent by mistake."""
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

    def __init__(self, limit: int) -> None:
        self._requests: deque[ReceivedRequest] = deque(maxlen=limit)
        self.total = 0
        """Number of all requests, including those dropped from the journal."""

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, index: int) -> ReceivedRequest:
        return self._requests[index]

    def __iter__(self) -> Iterator[ReceivedRequest]:
        return iter(tuple(self._requests))

    def add(self, request: ReceivedRequest) -> None:
        """Number a request and add it."""
        self.total += 1
        request.number = self.total
        self._requests.append(request)

    def to(self, path: str) -> list[ReceivedRequest]:
        """Return the requests whose path ends with `path`."""
        return [request for request in self._requests if request.path.endswith(path)]

    def clear(self) -> None:
        """Forget everything."""
        self._requests.clear()
