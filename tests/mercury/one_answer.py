"""An API that gives one answer to everything, and the bridge before it, in the test's own loop."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from tests.mercury.process import KEY
from tests.support.checked import CheckedClient, connect

MODELS = {"data": [{"id": "m", "pricing": {"prompt": "free", "completion": None}}]}


@asynccontextmanager
async def one_answer(
    status: int, body: Any, *, models: Any = MODELS, seen: list[bytes] | None = None
) -> AsyncIterator[str]:
    """Run an API that answers everything but the model list with one body; gives its URL."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        is_list = head.startswith(b"GET")
        if seen is not None and not is_list:
            size = int(head.lower().partition(b"content-length:")[2].split()[0])
            seen.append(head.split()[1] + b" " + await reader.readexactly(size))
        found = (
            json.dumps(models).encode()
            if is_list
            else body
            if isinstance(body, bytes)
            else json.dumps(body).encode()
        )
        writer.write(
            b"HTTP/1.1 %d X\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            % (200 if is_list else status, len(found))
        )
        writer.write(found)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@asynccontextmanager
async def answering(
    status: int,
    body: Any,
    folder: Path,
    *,
    models: Any = MODELS,
    seen: list[bytes] | None = None,
    **settings: str,
) -> AsyncIterator[CheckedClient]:
    """Connect to the bridge before such an API."""
    async with one_answer(status, body, models=models, seen=seen) as url:
        environment = {
            "MERCURY_API_URL": url,
            "MERCURY_API_KEY": KEY,
            "MERCURY_MODEL": "m",
            "MERCURY_MAX_RETRIES": "0",
            "BRIDGEHEAD_STATE_DIR": str(folder),
        }
        async with connect(make_bridge(MercurySettings(environment | settings))) as client:
            yield client


def completion(**more: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    return {"id": "1", "model": "m", "choices": [choice], "usage": {}, **more}
