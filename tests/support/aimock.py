"""aimock: an OpenAI-shaped mock server that others wrote, as an upstream for the mercury bridge.

Installed under `.node/` like everything from npm, and run on a free loopback port with the given fixtures.
Its journal tells what reached it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.interop.node import Package
from tests.interop.server_process import listening
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE

AIMOCK = Package("@copilotkit/aimock", "1.43.0")

Fixture = dict[str, Any]


class Aimock:
    """A running mock server."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.url = f"{address}/v1"

    def journal(self, path: str) -> list[dict[str, Any]]:
        """Return the requests to a path, oldest first."""
        with urlopen(f"{self._address}/__aimock/journal", timeout=PATIENCE) as answer:  # noqa: S310 - our own address
            requests: list[dict[str, Any]] = json.load(answer)
        return [request for request in requests if request["path"] == path]


@contextmanager
def mocking(node: str, fixtures: list[Fixture], folder: Path) -> Iterator[Aimock]:
    """Run the mock server with fixtures, which are written into a folder; unknown prompts are errors."""
    AIMOCK.install()
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": fixtures}), encoding="utf-8")
    port = free_port()
    program = str(AIMOCK.home / "dist" / "cli.js")
    options = ("--port", str(port), "--fixtures", str(file), "--strict", "--validate-on-load")
    with listening([node, program, *options, "--log-level", "silent"], port) as address:
        yield Aimock(address)
