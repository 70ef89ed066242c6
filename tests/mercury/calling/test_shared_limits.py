"""Limits over all replicas: together they let through what one would, and what was not used is given back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bridgehead.mercury.calling.call import CONNECTION
from bridgehead.mercury.calling.limits import Amounts, Limits, RoomClaim, Scope, Turnstile
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.runtime.stores import StoreUnavailable
from bridgehead.runtime.stores.joint import Joint
from bridgehead.runtime.stores.redis import Redis
from bridgehead.runtime.stores.windows import Asked, SharedWindows
from tests.mercury.calling.test_limits import Clock
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer
from tests.support.waiting import PATIENCE

FAR = float("inf")
GUEST = f"{CONNECTION}1"
"""A client that only one process can meet."""


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    async with connected(redis_server.url) as found:
        yield found


class Replica(Limits):
    """The limits of one replica, with a clock of its own that stands still."""

    def __init__(self, redis: Redis, **settings: str) -> None:
        self.clock = Clock()
        given = {
            "RATE_LIMIT_MAX": "0",
            "RATE_LIMIT_SERVER_MAX": "0",
            "RATE_LIMIT_WINDOW": "60000",
            **settings,
        }
        super().__init__(MercurySettings(given), self.clock, SharedWindows(redis, 60.0))


async def comes_to(limits: Limits, client: str, left: dict[str, dict[str, int]]) -> None:
    """Wait until so much is left: nobody waits for a correction."""
    async with asyncio.timeout(PATIENCE):
        while await limits.left(client) != left:
            await asyncio.sleep(0.005)


async def obtain(redis: Redis, claim: RoomClaim | None) -> RoomClaim:
    assert claim is not None
    await Joint(redis, [claim]).obtain(FAR)
    return claim


async def ask(redis: Redis, claim: RoomClaim) -> Any:
    """Ask for what a claim needs, and return the answer before anybody takes it."""
    step = claim.prepare()
    assert step is not None
    (answer,) = await redis.run_steps([step])
    return answer


async def test_replicas_share_the_calls_of_a_client_and_those_of_the_server(redis: Redis) -> None:
    settings = {"RATE_LIMIT_MAX": "2", "RATE_LIMIT_SERVER_MAX": "3"}
    one, other = Replica(redis, **settings), Replica(redis, **settings)
    for replica in (one, other):
        await replica.admit_call("ada", FAR)
        await replica.admit_request("ada", 0, 0, FAR)

    assert await other.left("ada") == {"client": {"requests": 0}, "server": {"requests": 1}}
    with pytest.raises(MercuryError, match=r"this client is reached; left now: 0 requests") as refused:
        await one.admit_call("ada", FAR)
    assert 0 < (refused.value.retry_after or 0) <= 60
    await one.admit_call("bob", FAR)
    await one.admit_request("bob", 0, 0, FAR)
    with pytest.raises(MercuryError, match="this server is reached; left now: 0 requests"):
        await other.admit_request("bob", 0, 0, FAR)


async def test_a_client_that_only_one_process_can_meet_is_counted_there(
    redis: Redis, redis_server: RedisServer
) -> None:
    one, other = (Replica(redis, RATE_LIMIT_MAX="1") for _ in range(2))
    await one.admit_call(GUEST, FAR)
    await other.admit_call(GUEST, FAR)

    with pytest.raises(MercuryError, match=r"this client is reached"):
        await one.admit_call(GUEST, FAR)
    assert (await one.left(GUEST))["client"] == {"requests": 0}
    assert b"client" not in redis_server.command("KEYS", "*")


async def test_the_limit_in_the_way_is_named_with_what_is_left_of_each_of_its_amounts(redis: Redis) -> None:
    limits = Replica(
        redis,
        RATE_LIMIT_INPUT_TOKENS="50",
        RATE_LIMIT_OUTPUT_TOKENS="60",
        RATE_LIMIT_SERVER_MAX="9",
        RATE_LIMIT_SERVER_OUTPUT_TOKENS="100",
    )
    await limits.admit_request("ada", 45, 53, FAR)

    with pytest.raises(MercuryError, match=r"this client is .* now: 5 input tokens, 7 output tokens"):
        await limits.admit_request("ada", 6, 1, FAR)
    with pytest.raises(MercuryError, match=r"this server is .* now: 8 requests, 47 output tokens"):
        await limits.admit_request("bob", 1, 48, FAR)
    assert await limits.left("ada") == {
        "client": {"input_tokens": 5, "output_tokens": 7},
        "server": {"requests": 8, "output_tokens": 47},
    }


async def test_what_a_request_used_takes_the_place_of_what_it_held_everywhere(redis: Redis) -> None:
    settings = {"RATE_LIMIT_SERVER_MAX": "9", "RATE_LIMIT_INPUT_TOKENS": "50"}
    one, other = Replica(redis, **settings), Replica(redis, **settings)
    room = await one.admit_request("ada", 40, 1, FAR)
    one.settle(room, 15, 1)

    await comes_to(other, "ada", {"client": {"input_tokens": 35}, "server": {"requests": 8}})


async def test_room_of_the_server_is_given_back_where_a_client_here_has_none(redis: Redis) -> None:
    limits = Replica(redis, RATE_LIMIT_INPUT_TOKENS="10", RATE_LIMIT_SERVER_INPUT_TOKENS="100")
    await limits.admit_request(GUEST, 8, 0, FAR)
    with pytest.raises(MercuryError, match=r"this client is reached; left now: 2 input tokens"):
        await limits.admit_request(GUEST, 8, 0, FAR)

    await comes_to(limits, GUEST, {"client": {"input_tokens": 2}, "server": {"input_tokens": 92}})
    limits.settle(await limits.admit_request(GUEST, 2, 0, FAR), 1, 0)
    await comes_to(limits, GUEST, {"client": {"input_tokens": 1}, "server": {"input_tokens": 91}})


async def test_a_client_that_is_counted_here_passes_no_limit_of_the_server(redis: Redis) -> None:
    limits = Replica(redis, RATE_LIMIT_INPUT_TOKENS="100", RATE_LIMIT_SERVER_MAX="1")
    await limits.admit_request(GUEST, 1, 0, FAR)

    with pytest.raises(MercuryError, match="this server is reached; left now: 0 requests"):
        await limits.admit_request(GUEST, 1, 0, FAR)
    assert (await limits.left(GUEST))["client"] == {"input_tokens": 99}


async def test_who_waits_for_room_here_holds_none_of_the_server_meanwhile(redis: Redis) -> None:
    server = {"RATE_LIMIT_SERVER_MAX": "9", "RATE_LIMIT_SERVER_INPUT_TOKENS": "90"}
    limits = Replica(
        redis,
        RATE_LIMIT_INPUT_TOKENS="10",
        RATE_LIMIT_SERVER_OUTPUT_TOKENS="99",
        RATE_LIMIT_WAIT_MS="90000",
        **server,
    )
    await limits.admit_request(GUEST, 8, 1, FAR)
    claim = limits.claim_request(GUEST, 8, 1)
    assert claim is not None

    assert claim.accept(await ask(redis, claim), FAR) == 60.0
    left = {"requests": 8, "input_tokens": 82, "output_tokens": 98}
    await comes_to(limits, GUEST, {"client": {"input_tokens": 2}, "server": left})
    assert claim.room.held == []


async def test_what_is_not_limited_is_not_counted(redis: Redis) -> None:
    limits = Replica(redis, RATE_LIMIT_INPUT_TOKENS="50")
    await limits.admit_request("ada", 30, 40, FAR)

    looked = await SharedWindows(redis, 60.0).look(Asked("mercury:client:ada", [1, 1, 1], [0, 0, 0]))
    assert list(looked) == [0, 30, 0]


def test_a_claim_waits_for_nothing_unless_it_is_told_how_long() -> None:
    scope, refused = Scope("this provider", Amounts(1, 0, 0), 0.5), MercuryError("LOCAL_RATE_LIMIT", "Busy.")
    turnstile = Turnstile(Clock())
    first, second = (RoomClaim(turnstile, [(scope, Amounts(1, 0, 0))], lambda _: refused) for _ in range(2))

    assert first.accept(None, FAR) == 0.0
    with pytest.raises(MercuryError, match="Busy"):
        second.accept(None, FAR)


async def test_a_request_that_does_not_go_out_gives_its_room_back_here_and_everywhere(redis: Redis) -> None:
    each = {"RATE_LIMIT_INPUT_TOKENS": "50", "RATE_LIMIT_OUTPUT_TOKENS": "60"}
    limits = Replica(redis, RATE_LIMIT_SERVER_MAX="5", **each)
    claim = await obtain(redis, limits.claim_request("ada", 30, 40))
    held = [entry for part in claim.room.held for _, entry in part.values()]
    assert sorted(amount for _, amount in held) == [1, 30, 40]
    claim.give_back()
    claim.give_back()

    all_of_it = {"client": {"input_tokens": 50, "output_tokens": 60}, "server": {"requests": 5}}
    await comes_to(limits, "ada", all_of_it)
    assert [amount for _, amount in held] == [0, 0, 0]


async def test_a_call_that_was_let_in_counts_whatever_becomes_of_it(redis: Redis) -> None:
    limits = Replica(redis, RATE_LIMIT_MAX="5")
    claim = await obtain(redis, limits.claim_call("ada"))
    claim.give_back()
    unanswered = limits.claim_call("ada")
    assert unanswered is not None
    await ask(redis, unanswered)
    assert (await limits.left("ada"))["client"] == {"requests": 3}
    unanswered.give_back()

    await comes_to(limits, "ada", {"client": {"requests": 4}, "server": {}})


async def test_room_that_was_asked_for_and_never_accepted_is_given_back(redis: Redis) -> None:
    limits = Replica(redis, RATE_LIMIT_INPUT_TOKENS="50", RATE_LIMIT_SERVER_MAX="5")
    claim = limits.claim_request("ada", 30, 40)
    assert claim is not None
    await ask(redis, claim)
    assert (await limits.left("ada"))["client"] == {"input_tokens": 20}
    claim.give_back()

    await comes_to(limits, "ada", {"client": {"input_tokens": 50}, "server": {"requests": 5}})


async def test_a_call_waits_for_room_no_longer_than_from_its_first_try(redis: Redis) -> None:
    limits = Replica(redis, RATE_LIMIT_MAX="1", RATE_LIMIT_WAIT_MS="90000")
    await limits.admit_call("ada", FAR)
    claim = limits.claim_call("ada")
    assert claim is not None

    first = claim.accept(await ask(redis, claim), FAR)
    assert 50 < first <= 60
    limits.clock.time += 60  # and still there is none, as Redis sees it
    with pytest.raises(MercuryError, match=r"this client is reached"):
        claim.accept(await ask(redis, claim), FAR)


async def test_a_call_waits_no_longer_than_its_deadline(redis: Redis) -> None:
    limits = Replica(redis, RATE_LIMIT_MAX="1", RATE_LIMIT_WAIT_MS="90000")
    await limits.admit_call("ada", FAR)
    claim = limits.claim_call("ada")
    assert claim is not None

    with pytest.raises(MercuryError, match=r"this client is reached"):
        claim.accept(await ask(redis, claim), limits.clock.time + 10)


async def test_while_redis_is_gone_what_was_taken_everywhere_counts_here(redis: Redis) -> None:
    limits = Replica(redis, RATE_LIMIT_MAX="2")
    await limits.admit_call("ada", FAR)
    claim, further = limits.claim_call("ada"), limits.claim_call("ada")
    assert claim is not None
    assert further is not None
    gone = StoreUnavailable("Redis is gone")
    for one in (claim, further):
        one.prepare()

    assert claim.accept(gone, FAR) == 0.0
    with pytest.raises(MercuryError, match=r"this client is reached; left now: 0 requests"):
        further.accept(gone, FAR)


async def test_what_is_not_limited_claims_nothing(redis: Redis) -> None:
    limits = Replica(redis, RATE_LIMIT_INPUT_TOKENS="50")
    off = Replica(redis, RATE_LIMIT_MAX="1", RATE_LIMIT_SERVER_MAX="1", RATE_LIMIT_ENABLED="false")

    assert [one.are_on for one in (limits, off, Replica(redis))] == [True, False, False]
    assert limits.claim_call("ada") is None
    assert limits.claim_request("ada", 0, 10) is None
    assert limits.claim_request("ada", 1, 0) is not None
    assert (off.claim_call("ada"), off.claim_request("ada", 1, 1)) == (None, None)
    with pytest.raises(MercuryError, match="can need 51 input tokens, and this client may use 50"):
        limits.claim_request("ada", 51, 0)
