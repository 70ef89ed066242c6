"""Consent over replicas: a confirmation is used once, and not at all where that cannot be known."""

import asyncio
from pathlib import Path
from time import time

from bridgehead.host.replicas.consent import ReplicatedConsent
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer, running_redis


async def test_a_confirmation_is_used_once_by_all_replicas_together(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as one, connected(redis_server.url) as other:
        consents = [ReplicatedConsent(one, time), ReplicatedConsent(other, time)]

        answers = await asyncio.gather(*(consent.use("n", time() + 60) for consent in consents * 5))

        assert answers.count(True) == 1
        assert await consents[0].use("m", time() + 60)


async def test_it_is_remembered_longer_than_it_is_good(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        assert await ReplicatedConsent(redis, time).use("n", time() - 1000)
        assert int(redis_server.command("PTTL", "bridgehead:consent:n")[1:]) > 60_000


async def test_without_redis_no_confirmation_counts(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            server.kill()

            assert not await ReplicatedConsent(redis, time).use("n", time() + 60)
