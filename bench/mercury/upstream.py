"""The upstream that all ways share: the simulated API, in a process of its own, and how it is steered."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

from bench.process import NotRunning, Process

MODEL = "mercury-3"
KEY = "sk_benchmark"
COMMAND = (sys.executable, "-m", "bridgehead", "mercury", "simulate", "--delay-ms", "0")


class Upstream:
    """A running simulated API, which answers at once unless it is told otherwise."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.port = int(url.split(":")[2].split("/", maxsplit=1)[0])

    def pace(self, chunk_delay: float) -> None:
        """Let this many seconds pass between the pieces of every stream."""
        orders = json.dumps({"always": {"chunk_delay": chunk_delay}}).encode()
        address = f"http://127.0.0.1:{self.port}/_faults"
        request = Request(address, orders, method="POST")
        with urlopen(request, timeout=10) as answer:  # noqa: S310 - the same
            assert answer.status == 200


@contextmanager
def running() -> Iterator[Upstream]:
    """Run the simulated API meanwhile."""
    with Process(COMMAND) as process:
        said = b""
        while b"\n" not in said:
            piece = os.read(process.stdout, 4096)
            if not piece:
                raise NotRunning(process.complaint())
            said += piece
        yield Upstream(said.split(b"\n")[0].decode())


def asked(words: int) -> dict[str, Any]:
    """Make the request that every way carries: an answer of so many words, each of them one piece."""
    return {"model": MODEL, "messages": [{"role": "user", "content": f"Tell it in {words} words."}]}
