"""The real command as a real process: owns starting `bridgehead bitburner`, calling its tools, and its end.

The calls are made from threads, because the game they reach lives in the test's own event loop.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.messages import request
from tests.support.stdio_peer import ROOT, Peer
from tests.support.waiting import PATIENCE

HOST = "127.0.0.1"


def environment(state: Path, port: int, **more: str) -> dict[str, str]:
    """What a process is started with: a folder of its own, and a port."""
    return {
        **os.environ,
        "BITBURNER_LISTEN": f"{HOST}:{port}",
        "BRIDGEHEAD_STATE_DIR": str(state),
        "BITBURNER_CONNECT_WAIT_MS": "10000",
        "RPC_RECONNECT_BASE_MS": "20",
        "RPC_RECONNECT_MAX_MS": "100",
        **more,
    }


class Bridge:
    """A running bridge and its client."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its result."""
        asked = request("tools/call", {"name": tool, "arguments": arguments})
        return (await asyncio.to_thread(self.peer.ask, asked))["result"]

    async def text(self, tool: str, **arguments: Any) -> str:
        """Call a tool and return its text."""
        text: str = (await self.call(tool, **arguments))["content"][0]["text"]
        return text

    async def status(self) -> Any:
        """How the connection stands."""
        return (await self.call("connection_status"))["structuredContent"]

    async def until(self, **expected: Any) -> Any:
        """Wait until the status is as expected."""
        async with asyncio.timeout(PATIENCE):
            while not expected.items() <= (status := await self.status()).items():
                await asyncio.sleep(0.02)
        return status


@contextmanager
def serving(errors: Path, variables: dict[str, str]) -> Iterator[Bridge]:
    """Start the command and shake hands."""
    their_input, outgoing = os.pipe()
    incoming, their_output = os.pipe()
    with errors.open("ab") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "bridgehead", "bitburner"],
            stdin=their_input,
            stdout=their_output,
            stderr=stderr,
            cwd=ROOT,
            env=variables,
        )
    os.close(their_input)
    os.close(their_output)
    peer = Peer(process, outgoing, incoming)
    try:
        peer.shake_hands()
        yield Bridge(peer)
    finally:
        peer.dispose()


def log_lines(errors: Path) -> list[dict[str, Any]]:
    """What a process has logged."""
    return [json.loads(line) for line in errors.read_text(encoding="utf-8").splitlines()]
