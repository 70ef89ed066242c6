"""Claims that are asked for together: one round trip, in order, and all of them are granted or none."""

import asyncio
import math
from collections.abc import Awaitable
from typing import Any

import pytest

from bridgehead.runtime.stores import Script, Step, StoreUnavailable
from bridgehead.runtime.stores.joint import Joint
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer

TAKE = Script("return {redis.call('DECR', KEYS[1])}", passes="answer[1] >= 0")
"""Takes one of so many; what is below nothing was in vain."""


class Some:
    """A claim on one of a few things, or on something that Redis knows nothing of."""

    def __init__(self, key: str, *, waits: int = 0, is_here: bool = False) -> None:
        self.key = key
        self.answers: list[Any] = []
        self.given_back = 0
        self._waits = waits
        self._is_here = is_here

    def prepare(self) -> Step | None:
        return None if self._is_here else Step(TAKE, [self.key], [])

    def accept(self, answer: Any, deadline: float) -> float | Awaitable[None]:
        self.answers.append(answer)
        assert deadline == math.inf
        if len(self.answers) <= self._waits:
            return 0.001
        if isinstance(answer, list) and answer[0] < 0:
            raise ValueError(self.key)
        return 0.0

    def give_back(self) -> None:
        self.given_back += 1


def stock(server: RedisServer, **amounts: int) -> None:
    for key, amount in amounts.items():
        server.command("SET", key, str(amount))


def left(server: RedisServer, key: str) -> int:
    return int(server.command("GET", key).split(b"\r\n")[1])


async def test_all_claims_are_asked_in_one_round_trip(redis_server: RedisServer) -> None:
    stock(redis_server, a=3, b=3)
    async with connected(redis_server.url) as redis:
        claims = [Some("a"), Some("here", is_here=True), Some("b")]
        await Joint(redis, claims).obtain(math.inf)

        assert redis.pipelines == 1
        assert [claim.answers for claim in claims] == [[[2]], [None], [[2]]]
        assert not any(claim.given_back for claim in claims)


async def test_what_is_behind_a_refusal_is_not_asked_and_the_rest_is_given_back(
    redis_server: RedisServer,
) -> None:
    stock(redis_server, a=3, b=0, c=3)
    async with connected(redis_server.url) as redis:
        claims = [Some("a"), Some("b"), Some("c")]
        with pytest.raises(ValueError, match="b"):
            await Joint(redis, claims).obtain(math.inf)

        assert [claim.given_back for claim in claims] == [1, 1, 1]
        assert left(redis_server, "c") == 3


async def test_a_claim_that_waits_is_asked_again_with_those_behind_it(redis_server: RedisServer) -> None:
    stock(redis_server, a=3, b=-1, c=3)
    async with connected(redis_server.url) as redis:
        claims = [Some("a"), Some("b", waits=1), Some("here", is_here=True), Some("c")]
        joint = Joint(redis, claims)
        asked = asyncio.ensure_future(joint.obtain(math.inf))
        while len(claims[1].answers) < 1:
            await asyncio.sleep(0)
        stock(redis_server, b=3)
        await asked

        assert [left(redis_server, key) for key in "abc"] == [2, 2, 2]
        assert claims[2].answers == [None]


async def test_a_claim_that_waits_for_something_to_happen_is_asked_again_then(
    redis_server: RedisServer,
) -> None:
    stock(redis_server, a=-1, b=3)

    class Supplied(Some):
        def accept(self, answer: Any, deadline: float) -> float | Awaitable[None]:
            return self.supply() if answer[0] < 0 else super().accept(answer, deadline)

        async def supply(self) -> None:
            stock(redis_server, a=3)

    async with connected(redis_server.url) as redis:
        claims = [Supplied("a"), Some("b")]
        await Joint(redis, claims).obtain(math.inf)

        assert redis.pipelines == 2
        assert [claim.answers for claim in claims] == [[[2]], [[2]]]


async def test_while_a_claim_that_is_not_redis_s_waits_the_others_stay_taken(
    redis_server: RedisServer,
) -> None:
    stock(redis_server, a=3, b=3)
    async with connected(redis_server.url) as redis:
        claims = [Some("a"), Some("here", is_here=True, waits=2), Some("b")]
        await Joint(redis, claims).obtain(math.inf)

        assert redis.pipelines == 1
        assert claims[1].answers == [None] * 3
        assert left(redis_server, "b") == 2


async def test_a_part_can_be_obtained_first_and_the_rest_is_known_then(redis_server: RedisServer) -> None:
    stock(redis_server, a=3, b=3)
    async with connected(redis_server.url) as redis:
        claims = [Some("a"), Some("b")]
        joint = Joint(redis, claims)
        await joint.obtain(math.inf, 1)
        assert [len(claim.answers) for claim in claims] == [1, 0]
        await joint.obtain(math.inf)

        assert redis.pipelines == 1
        assert claims[1].answers == [[2]]


async def test_without_redis_every_claim_hears_of_it(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        await redis.close()
        claims = [Some("a"), Some("b")]
        await Joint(redis, claims).obtain(math.inf)

        assert all(isinstance(claim.answers[0], StoreUnavailable) for claim in claims)
        await redis.start()


async def test_whoever_leaves_while_asking_gives_everything_back(redis_server: RedisServer) -> None:
    stock(redis_server, a=3)
    async with connected(redis_server.url) as redis:
        claim = Some("a")
        asking = asyncio.ensure_future(Joint(redis, [claim]).obtain(math.inf))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    assert claim.given_back == 1
