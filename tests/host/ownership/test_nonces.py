"""Nonces: each is used once, by whichever process, and not at all if that cannot be known."""

import asyncio
import sqlite3
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import time
from typing import Any

import msgspec
import pytest

from bridgehead.host.ownership.nonces import FILE, RedisNonces, SqliteNonces
from bridgehead.mcp import MemoryNonces
from bridgehead.runtime.errors import StorageError
from tests.host.conftest import Dial
from tests.host.test_command import post
from tests.runtime.stores.test_redis import connected
from tests.support.host_command import serving
from tests.support.http_server import mirrored
from tests.support.messages import call, stateless
from tests.support.open_files import files_open_in
from tests.support.redis_server import RedisServer, running_redis

CAPABLE: dict[str, Any] = {"elicitation": {"form": {}}}

Use = Callable[[str, float], Awaitable[bool]]


async def test_a_confirmation_is_used_once_by_all_replicas_together(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as one, connected(redis_server.url) as other:
        consents = [RedisNonces(one, time), RedisNonces(other, time)]

        answers = await asyncio.gather(*(consent.use("n", time() + 60) for consent in consents * 5))

        assert answers.count(True) == 1
        assert await consents[0].use("m", time() + 60)


Store = RedisNonces | SqliteNonces | MemoryNonces


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def nonces(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer
) -> AsyncIterator[Store]:
    """Each place where it is noted that a confirmation was used."""
    if request.param == "redis":
        async with connected(redis_server.url) as redis:
            yield RedisNonces(redis, time)
    elif request.param == "sqlite":
        with closing(SqliteNonces(tmp_path, time)) as shared:
            yield shared
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


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[SqliteNonces]]:
    """Three processes that share a folder, each with a connection of its own."""
    made = [SqliteNonces(tmp_path, lambda: 1000.0) for _ in range(3)]
    yield made
    for one in made:
        one.close()


async def test_of_many_uses_at_once_one_is_the_first(workers: list[SqliteNonces], tmp_path: Path) -> None:
    for nonce in ("a", "b"):
        uses = [worker.use(nonce, 1060.0) for worker in workers for _ in range(10)]
        assert sum(await asyncio.gather(*uses)) == 1

    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


async def test_what_has_expired_is_forgotten(workers: list[SqliteNonces], tmp_path: Path) -> None:
    assert await workers[0].use("old", 999.0)
    with closing(SqliteNonces(tmp_path, lambda: 2000.0)) as later:
        assert await later.use("new", 2060.0)

    assert await workers[1].use("old", 999.0), "it would be refused by its date"


async def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database, but long enough to be looked at as if it were one" * 100)

    assert not await SqliteNonces(tmp_path, lambda: 0.0).use("a", 60.0)


async def test_what_cannot_be_read_is_not_taken_for_unused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 100)

    with pytest.raises(StorageError, match="The file of nonces cannot be read"):
        await SqliteNonces(tmp_path, lambda: 0.0).is_used("a")


async def test_after_it_was_closed_it_still_knows_what_was_used(
    workers: list[SqliteNonces], tmp_path: Path
) -> None:
    assert await workers[0].use("a", 1060.0)
    workers[0].close()

    assert not files_open_in(tmp_path)
    assert not await workers[0].use("a", 1060.0)
    assert await workers[0].use("b", 1060.0)


async def test_once_the_damaged_file_is_gone_confirmations_count_again(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 100)
    with closing(SqliteNonces(tmp_path, lambda: 0.0)) as nonces:
        refused = await nonces.use("a", 60.0)
        (tmp_path / FILE).unlink()

        assert not refused
        assert not files_open_in(tmp_path)
        assert await nonces.use("a", 60.0)
        assert not await nonces.use("a", 60.0)


async def test_expired_nonces_are_removed_at_the_first_use_and_at_each_hundredth_after_it(
    tmp_path: Path,
) -> None:
    def is_kept() -> bool:
        with closing(sqlite3.connect(tmp_path / FILE)) as file:
            return file.execute("SELECT 1 FROM used WHERE nonce = 'old'").fetchone() is not None

    with closing(SqliteNonces(tmp_path, lambda: 1000.0)) as nonces:
        await nonces.use("first", 1060.0)
        await nonces.use("old", 999.0)
        for number in range(3, 101):
            await nonces.use(str(number), 1060.0)
        before = is_kept()
        await nonces.use("101", 1060.0)

        assert (before, is_kept()) == (True, False)
        assert not await nonces.use("first", 1060.0)


async def test_workers_read_its_file_while_another_writes(tmp_path: Path) -> None:
    with closing(SqliteNonces(tmp_path, lambda: 1000.0)) as nonces:
        await nonces.use("a", 1060.0)
        with closing(sqlite3.connect(tmp_path / FILE)) as file:
            facts = [
                file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "user_version")
            ]

    assert facts == ["wal", 1]


async def test_a_confirmation_is_taken_by_one_worker_only(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path, "--bridges", "slow", "--workers", "2", workers=2) as host:

        async def ask(more: dict[str, Any]) -> Any:
            params = {**call("slow_erase", {"text": "x"}), **more}
            message = stateless("tools/call", params, capabilities=CAPABLE)
            body = await (await post(dial(host.port), message, mirrored(message))).body()
            return msgspec.json.decode(body)

        asked = (await ask({}))["result"]
        answer = {"elicitation": {"action": "accept", "content": {"text": "yes"}}}
        again = {"requestState": asked["requestState"], "inputResponses": answer}
        answers = [await ask(again) for _ in range(12)]  # connections go to either worker

    assert sum("result" in one for one in answers) == 1
    assert {one["error"]["message"] for one in answers if "error" in one} == {
        "requestState is refused: it was answered already; make the request again from the start"
    }
