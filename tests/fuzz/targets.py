"""Targets: how an input is checked, what to begin with, and the words that mean something to the code."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from tests.fuzz import http_connection, json_rpc


@dataclass(frozen=True)
class Target:
    """What is fuzzed. The second argument of `check` seeds its dice."""

    check: Callable[[bytes, int], Coroutine[Any, Any, None]]
    seeds: Sequence[bytes]
    words: Sequence[bytes]

    async def judge(self, data: bytes) -> None:
        """Check an input; the dice depend on its bytes alone, so that a failure repeats."""
        await self.check(data, crc32(data))


TARGETS = {
    "http": Target(http_connection.check, http_connection.SEEDS, http_connection.WORDS),
    "jsonrpc": Target(json_rpc.check, json_rpc.SEEDS, json_rpc.WORDS),
}
