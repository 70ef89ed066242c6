"""An API that gives one answer to everything, and the bridge before it, in the test's own loop."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from tests.mercury.process import KEY
from tests.support.checked import CheckedClient, connect
from tests.support.fake_api import Answer, Request, fake_api

MODELS = {"data": [{"id": "m", "pricing": {"prompt": "free", "completion": None}}]}


@asynccontextmanager
async def one_answer(
    status: int, body: Any, *, models: Any = MODELS, seen: list[bytes] | None = None
) -> AsyncIterator[str]:
    """Run an API that answers everything but the model list with one body; gives its URL."""

    async def respond(request: Request) -> Answer:
        if request.method == "GET":
            return Answer(200, json.dumps(models).encode())
        if seen is not None:
            seen.append(request.path.encode() + b" " + request.body)
        return Answer(status, body if isinstance(body, bytes) else json.dumps(body).encode())

    async with fake_api(respond) as api:
        yield f"{api.url}/v1"


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


USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def completion(**more: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    return {"id": "1", "model": "m", "choices": [choice], "usage": USAGE, **more}
