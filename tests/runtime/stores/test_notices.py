"""Notices between processes: heard, and after a lost connection known to be incomplete."""

import asyncio
from typing import Any

import pytest
from redis.asyncio.client import PubSub

from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores.test_redis import connected
from tests.support.proxy import proxied
from tests.support.redis_server import RedisServer
from tests.support.waiting import until


class Ear:
    """Listens to a channel, and notes what it hears and how often it may have missed something."""

    def __init__(self, redis: Redis, channel: str = "news") -> None:
        self.heard: list[bytes] = []
        self.gaps = 0
        self.leave = redis.notices.subscribe(channel, self.heard.append, self._miss)

    def _miss(self) -> None:
        self.gaps += 1


async def test_a_notice_is_heard_by_everybody_who_listens(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as one, connected(redis_server.url) as other:
        ears = [Ear(one), Ear(other), Ear(other)]
        deaf = Ear(other, "elsewhere")
        await until(lambda: all(ear.gaps for ear in (*ears, deaf)))

        one.publish("news", b"a change")

        await until(lambda: all(ear.heard == [b"a change"] for ear in ears))
        assert deaf.heard == []


async def test_who_leaves_hears_nothing_more(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        first, second = Ear(redis), Ear(redis)
        await until(lambda: second.gaps)
        first.leave()
        first.leave()

        redis.publish("news", b"1")

        await until(lambda: second.heard)
        assert first.heard == []
        second.leave()
        await until(lambda: redis_server.command("PUBSUB", "NUMSUB", "bridgehead:news").endswith(b":0\r\n"))


async def test_after_a_lost_connection_everything_may_have_changed(redis_server: RedisServer) -> None:
    async with (
        connected(redis_server.url) as speaker,
        proxied(redis_server.port) as proxy,
        connected(proxy.through(redis_server.url)) as listener,
    ):
        ear = Ear(listener)
        await until(lambda: ear.gaps)
        before = ear.gaps
        proxy.fault = "refused"
        proxy.cut()
        speaker.publish("news", b"lost")
        proxy.fault = "none"

        await until(lambda: ear.gaps > before)
        speaker.publish("news", b"heard")
        await until(lambda: ear.heard == [b"heard"])


async def test_a_connection_that_went_silent_is_given_up(redis_server: RedisServer) -> None:
    async with proxied(redis_server.port) as proxy, connected(proxy.through(redis_server.url)) as listener:
        ear = Ear(listener)
        await until(lambda: ear.gaps)
        before = ear.gaps
        proxy.fault = "silent"
        connections = proxy.connections
        await until(lambda: proxy.connections > connections)
        proxy.fault = "none"

        await until(lambda: ear.gaps > before)


def fail(_message: bytes) -> None:
    raise ValueError


async def test_a_listener_that_fails_does_not_make_others_deaf(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        redis.notices.subscribe("news", fail)
        ear = Ear(redis)
        await until(lambda: ear.gaps)

        redis.publish("news", b"1")

        await until(lambda: ear.heard == [b"1"])


async def test_who_subscribes_while_the_connection_is_being_made_is_not_deaf(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on, subscribe = asyncio.Event(), asyncio.Event(), PubSub.subscribe

    async def subscribe_slowly(pubsub: PubSub, *channels: Any) -> None:
        begun.set()
        await may_go_on.wait()
        await subscribe(pubsub, *channels)

    monkeypatch.setattr(PubSub, "subscribe", subscribe_slowly)
    async with connected(redis_server.url) as redis:
        await begun.wait()
        ear = Ear(redis)
        may_go_on.set()

        await until(lambda: ear.gaps)
