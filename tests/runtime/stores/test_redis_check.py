"""What a doctor says of Redis: what is shared and what not, what is missing, and what it would forget."""

from pathlib import Path

import pytest

from bridgehead.runtime import stores
from bridgehead.runtime.directories import ReplicaSettings
from bridgehead.runtime.stores.redis_check import examine_redis
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE


@pytest.fixture(autouse=True)
def wait_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "REDIS_SECONDS", PATIENCE)


async def examined(url: str = "") -> tuple[str, str, str]:
    found = await examine_redis(ReplicaSettings({"BRIDGEHEAD_REDIS_URL": url}), "limits", "streams")
    return found.verdict, found.text, found.advice


async def test_it_says_what_is_shared_and_what_is_not(redis_server: RedisServer) -> None:
    verdict, text, _ = await examined(redis_server.url)

    assert verdict == "right"
    assert text.endswith(": shares limits with other replicas, but not streams")


async def test_without_redis_it_says_what_stays_on_this_machine() -> None:
    assert await examined() == ("right", "not set: limits are kept on this machine", "")


async def test_a_redis_that_is_gone_is_named_without_its_password() -> None:
    verdict, text, advice = await examined(f"redis://:hunter2@127.0.0.1:{free_port()}/0")

    assert (verdict, "hunter2" in text, "BRIDGEHEAD_REDIS_URL" in advice) == ("wrong", False, True)


async def test_a_redis_that_forgets_when_it_is_full_is_wrong(tmp_path: Path) -> None:
    options = ("--maxmemory", "64mb", "--maxmemory-policy")
    with running_redis(tmp_path, *options, "volatile-lru") as forgetful:
        verdict, text, advice = await examined(forgetful.url)
    with running_redis(tmp_path, *options, "noeviction") as strict:
        fine, *_ = await examined(strict.url)

    assert (verdict, fine) == ("wrong", "right")
    assert "volatile-lru" in text
    assert "noeviction" in advice
