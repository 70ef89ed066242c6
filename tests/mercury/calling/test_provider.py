"""Providers: every fault of one, over every kind of route, and what it costs at most."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.mercury.simulator.faults import NAMED
from tests.mercury.process import (
    environment,
    sharing,
    two_replicas,
)
from tests.support.checked import connect
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, STREAM = "mercury_chat_completion", "mercury_chat_stream"
ROUTES = {
    "alone": ["local/mercury-2"],
    "with a fallback": ["local/mercury-3", "mercury/mercury-2"],
    "as the fallback of another": ["gone/mercury-3", "local/mercury-2"],
}
HARMLESS = "undone"
"""A stream without `[DONE]`: whole if it ends with its usage."""
FAST = {"MERCURY_RETRY_DELAY": "1"}
NEVER_ENDS = {"endless", "silent"}


@pytest_asyncio.fixture(loop_scope="module")
async def local() -> AsyncIterator[Simulator]:
    """Another provider."""
    async with Simulator() as one:
        yield one


def write_routes(folder: Path, local: Simulator, to: list[str], more: str = "") -> str:
    file = folder / "routes.toml"
    file.write_text(
        f'[providers.local]\nurl = "{local.url}"\n{more}[providers.gone]\nurl = "http://127.0.0.1:9/v1"\n'
        f'[[routes]]\nmodel = "fast"\nto = {to!r}\n'
    )
    return str(file)


def count_bills(*providers: Simulator) -> int:
    """Count the requests that a provider took without refusing them: each may be on its bill."""
    requests = [request for provider in providers for request in provider.requests.to("/chat/completions")]
    return sum(is_billable(request.fault) for request in requests)


def is_billable(fault: Fault | None) -> bool:
    return fault is None or fault.status < 300


@pytest.mark.parametrize("tool", [CHAT, STREAM])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", NAMED)
async def test_no_fault_of_a_provider_bills_a_call_twice(
    api: Simulator, local: Simulator, tmp_path: Path, name: str, route: str, tool: str
) -> None:
    routes = write_routes(tmp_path, local, ROUTES[route])
    given = environment(api.url, tmp_path, MERCURY_ROUTES_FILE=routes, **FAST)
    async with connect(make_bridge(MercurySettings(given))) as client:
        local.faults.next(NAMED[name])
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": "Of faults"}], "model": "fast"}
        limit = {"timeout_ms": 500} if name in NEVER_ENDS else {}
        result = await client.call(tool, {**asked, **limit})

    assert count_bills(api, local) <= 1
    struck = is_billable(NAMED[name]) and NAMED[name].kind and name != HARMLESS
    if struck:
        assert result["isError"]
        assert not api.requests.to("/chat/completions")
    if NAMED[name].status in {408, 429, 500, 502, 503, 504}:
        assert not result.get("isError"), "what cannot bill is asked again, here or elsewhere"


# --- replicas ----------------------------------------------------------------------------------------------

ASK = {"messages": [{"role": "user", "content": "Of replicas, in 8 words"}]}


async def test_a_provider_is_asked_as_often_by_all_replicas_as_by_one(
    api: Simulator, local: Simulator, tmp_path: Path, redis_server: RedisServer
) -> None:
    routes = write_routes(tmp_path, local, ["local/mercury-2"], "requests_per_minute = 3\n")
    settings = {"MERCURY_ROUTES_FILE": routes, **sharing(redis_server)}
    async with two_replicas(api.url, tmp_path, **settings) as replicas:
        calls = [one.start(CHAT, {**ASK, "model": "fast"})[1] for _ in range(5) for one in replicas]
        results = [(await answer)["result"] for answer in calls]

    assert len(local.requests.to("/chat/completions")) == 3
    assert sum("isError" in result for result in results) == 7
