"""Consent over replicas: a confirmation is used once, and not at all where that cannot be known."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from time import time

import pytest

from bridgehead.host.replicas.consent import ReplicatedConsent
from bridgehead.host.workers.consent import SharedConsent
from bridgehead.mcp import MemoryNonces
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer, running_redis

Use = Callable[[str, float], bool | Awaitable[bool]]


async def test_a_confirmation_is_used_once_by_all_replicas_together(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as one, connected(redis_server.url) as other:
        consents = [ReplicatedConsent(one, time), ReplicatedConsent(other, time)]

        answers = await asyncio.gather(*(consent.use("n", time() + 60) for consent in consents * 5))

        assert answers.count(True) == 1
        assert await consents[0].use("m", time() + 60)


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def consent(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer
) -> AsyncIterator[Use]:
    """Each place where it is noted that a confirmation was used."""
    if request.param == "redis":
        async with connected(redis_server.url) as redis:
            yield ReplicatedConsent(redis, time).use
    elif request.param == "sqlite":
        with closing(SharedConsent(tmp_path, time)) as shared:
            yield shared.use
    else:
        yield MemoryNonces(time).use


async def use(consent: Use, nonce: str) -> bool:
    answer = consent(nonce, time() + 60)
    return answer if isinstance(answer, bool) else await answer


async def test_a_confirmation_counts_once_wherever_that_is_noted(consent: Use) -> None:
    answers = await asyncio.gather(*(use(consent, "n") for _ in range(10)))

    assert answers.count(True) == 1
    assert not await use(consent, "n")
    assert await use(consent, "m")


async def test_it_is_remembered_longer_than_it_is_good(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        assert await ReplicatedConsent(redis, time).use("n", time() - 1000)
        assert int(redis_server.command("PTTL", "bridgehead:consent:n")[1:]) > 60_000


async def test_without_redis_no_confirmation_counts(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            server.kill()

            assert not await ReplicatedConsent(redis, time).use("n", time() + 60)
