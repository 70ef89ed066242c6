"""Cool-downs: what one replica leaves alone, the others leave alone too, also those that come later."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from time import monotonic

from bridgehead.runtime.stores.cooldowns import Cooldowns
from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import until

NAMES = ("breaker", "key:1")


class Follower:
    """A replica, and what it heard."""

    def __init__(self, redis: Redis, space: str = "api") -> None:
        self.heard: list[tuple[str, float]] = []
        self.looked = 0
        self.cooldowns = Cooldowns(redis, space)
        self.cooldowns.start(self._names, lambda name, seconds: self.heard.append((name, seconds)))

    def _names(self) -> tuple[str, ...]:
        """Return what is looked for as soon as it listens, and after every gap."""
        self.looked += 1
        return NAMES


@asynccontextmanager
async def following(server: RedisServer, space: str = "api") -> AsyncIterator[Follower]:
    async with connected(server.url) as redis:
        follower = Follower(redis, space)
        await until(lambda: follower.looked)
        yield follower
        follower.cooldowns.stop()


async def test_others_hear_of_a_cool_down_and_of_its_end_and_oneself_does_not(
    redis_server: RedisServer,
) -> None:
    async with following(redis_server) as one, following(redis_server) as other:
        one.cooldowns.begin("key:1", 30.0)
        one.cooldowns.end("key:1")
        await until(lambda: other.heard[-2:] == [("key:1", 30.0), ("key:1", 0.0)])

    assert one.heard == []


async def test_others_follow_within_a_tenth_of_a_second(redis_server: RedisServer) -> None:
    took = []
    async with following(redis_server) as one, following(redis_server) as other:
        for number in range(31):
            begin = monotonic()
            one.cooldowns.begin(f"key:{number}", 30.0)
            await until(lambda name=f"key:{number}": name in dict(other.heard))  # type: ignore[misc]
            took.append(monotonic() - begin)

    assert median(took) < 0.1  # single ones may be late on a busy machine


async def test_whoever_comes_later_reads_how_long_it_still_lasts(redis_server: RedisServer) -> None:
    async with following(redis_server) as one:
        one.cooldowns.begin("breaker", 30.0)
        one.cooldowns.begin("key:1", 30.0)
        one.cooldowns.end("key:1")
        async with following(redis_server) as late:
            await until(lambda: late.heard)

    assert {name for name, _ in late.heard} == {"breaker"}
    assert all(0 < seconds <= 30 for _, seconds in late.heard)


async def test_what_was_told_while_redis_was_away_is_not_waited_for(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with following(server) as one, following(server) as other:
            server.kill()
            one.cooldowns.begin("breaker", 30.0)  # nobody hears, and nobody fails
            server.start()
            await until(lambda: _told_again(one, other))


def _told_again(one: Follower, other: Follower) -> bool:
    one.cooldowns.begin("key:1", 5.0)
    return "key:1" in dict(other.heard)


async def test_each_space_has_its_own(redis_server: RedisServer) -> None:
    async with following(redis_server) as one, following(redis_server, "other") as other:
        one.cooldowns.begin("breaker", 30.0)
        other.cooldowns.begin("key:1", 1.0)
        async with following(redis_server, "other") as late:
            await until(lambda: late.heard)

    assert [name for name, _ in late.heard] == ["key:1"]
    assert (one.heard, other.heard) == ([], [])
