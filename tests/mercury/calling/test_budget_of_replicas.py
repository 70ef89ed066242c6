"""The budget over replicas: one for all of them, whatever dies."""

from pathlib import Path

import pytest

from bridgehead.commands import db
from bridgehead.mercury.simulator import Simulator
from tests.mercury.calling.test_budget import ASK, CHAT, WORST
from tests.mercury.process import bridge_process, sharing
from tests.support.redis_server import RedisServer, running_redis

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def database(database_url: str) -> dict[str, str]:
    """The setting of a database with our tables."""
    setting = {"BRIDGEHEAD_DATABASE_URL": database_url}
    db.main(["migrate"], setting)
    return setting


@pytest.mark.parametrize("has_database", [False, True], ids=["redis", "redis and postgresql"])
async def test_two_replicas_of_the_bridge_have_one_budget(
    api: Simulator, tmp_path: Path, redis_server: RedisServer, database: dict[str, str], *, has_database: bool
) -> None:
    shared = {
        "MERCURY_BUDGET_USD": "0.001",
        "CACHE_ENABLED": "false",
        **sharing(redis_server),
        **(database if has_database else {}),
    }
    message = [{"role": "user", "content": "Of money, in 8 words"}]
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    async with (
        bridge_process(api.url, tmp_path / "one", **shared) as one,
        bridge_process(api.url, tmp_path / "other", **shared) as other,
    ):
        first = await one.call(CHAT, {"messages": message, "max_tokens": 20})
        cost = first["structuredContent"]["metadata"]["cost_usd"]
        refused = await other.error(CHAT, {"messages": message, "max_tokens": 1333})
        spent = (await other.call("mercury_usage"))["structuredContent"]["budget"]

    assert refused["code"] == "BUDGET_EXCEEDED"
    assert spent["committed_usd"] == pytest.approx(cost, abs=2e-6), "what the other one spent"


async def test_a_replica_and_its_redis_that_die_together_do_not_pass_the_budget(
    api: Simulator, tmp_path: Path, database: dict[str, str]
) -> None:
    limit, spent, is_refused = 2.2 * WORST, 0.0, False
    with running_redis(tmp_path) as server:
        settings = {"MERCURY_BUDGET_USD": f"{limit:.9f}", **sharing(server), **database}
        for _ in range(12):
            async with bridge_process(api.url, tmp_path, **settings) as client:
                answer = await client.call(CHAT, ASK)
                client.process.kill()
                await client.process.wait()
            server.kill()
            server.start()
            if is_refused := "isError" in answer:
                break
            spent += answer["structuredContent"]["metadata"]["cost_usd"]

    assert is_refused
    assert 0 < spent <= limit
