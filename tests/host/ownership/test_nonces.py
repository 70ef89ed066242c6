"""Nonces: each is used once, by whichever process, and not at all if that cannot be known."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from time import time
from typing import Any

import pytest

from bridgehead.host.ownership.nonces import RedisNonces
from bridgehead.mcp import MemoryNonces
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer, running_redis

CAPABLE: dict[str, Any] = {"elicitation": {"form": {}}}

Use = Callable[[str, float], Awaitable[bool]]


async def test_a_confirmation_is_used_once_by_all_replicas_together(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as one, connected(redis_server.url) as other:
        consents = [RedisNonces(one, time), RedisNonces(other, time)]

        answers = await asyncio.gather(*(consent.use("n", time() + 60) for consent in consents * 5))

        assert answers.count(True) == 1
        assert await consents[0].use("m", time() + 60)


Store = RedisNonces | MemoryNonces


@pytest.fixture(params=["memory", "redis"])
async def nonces(request: pytest.FixtureRequest, redis_server: RedisServer) -> AsyncIterator[Store]:
    """Each place where it is noted that a confirmation was used."""
    if request.param == "redis":
        async with connected(redis_server.url) as redis:
            yield RedisNonces(redis, time)
    else:
        yield MemoryNonces(time)


@pytest.fixture
def consent(nonces: Store) -> Use:
    """The function that uses one."""
    return nonces.use


async def test_whether_a_nonce_was_used_can_be_asked_without_using_it(nonces: Store) -> None:
    assert not await nonces.is_used("n")
    assert await use(nonces.use, "n")
    assert (await nonces.is_used("n"), await nonces.is_used("m")) == (True, False)


async def use(consent: Use, nonce: str) -> bool:
    return await consent(nonce, time() + 60)


async def test_a_confirmation_counts_once_wherever_that_is_noted(consent: Use) -> None:
    answers = await asyncio.gather(*(use(consent, "n") for _ in range(10)))

    assert answers.count(True) == 1
    assert not await use(consent, "n")
    assert await use(consent, "m")


async def test_it_is_remembered_longer_than_it_is_good(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        assert await RedisNonces(redis, time).use("n", time() - 1000)
        assert int(redis_server.command("PTTL", "bridgehead:nonce:n")[1:]) > 60_000


async def test_in_redis_it_stays_used_until_it_expires_and_five_minutes_longer(
    redis_server: RedisServer,
) -> None:
    async with connected(redis_server.url) as redis:
        assert await RedisNonces(redis, lambda: 1000.0).use("hour", 1000.0 + 3600)
        left = int(redis_server.command("PTTL", "bridgehead:nonce:hour")[1:])

    assert 3_600_000 < left <= 3_900_000


async def test_without_redis_no_confirmation_counts(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            server.kill()

            assert not await RedisNonces(redis, time).use("n", time() + 60)
