"""What a doctor says of Redis: what is shared and what not, what is missing, and what it would forget."""

from pathlib import Path

from bridgehead.runtime.directories import ReplicaSettings
from bridgehead.runtime.stores.examining import examine_budgets, examine_redis
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer, running_redis, wait_until


async def examined(url: str = "") -> tuple[str, str, str]:
    found = await examine_redis(
        ReplicaSettings({"BRIDGEHEAD_REDIS_URL": url, "BRIDGEHEAD_REDIS_SECONDS": "10"}), "limits", "streams"
    )
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


async def test_a_redis_that_forgets_when_it_is_full_is_no_place_for_budgets(tmp_path: Path) -> None:
    options = ("--maxmemory", "64mb", "--maxmemory-policy")
    with running_redis(tmp_path, *options, "volatile-lru") as forgetful:
        verdict, text, advice = await examined(forgetful.url)
    with running_redis(tmp_path, *options, "noeviction") as strict:
        fine, *_ = await examined(strict.url)

    assert (verdict, fine) == ("wrong", "right")
    assert "volatile-lru" in text
    assert "noeviction" in advice


# --- budgets -----------------------------------------------------------------------------------------------


async def of_budgets(url: str, database_url: str | None = None) -> tuple[str, str, str]:
    settings = ReplicaSettings({"BRIDGEHEAD_REDIS_URL": url, "BRIDGEHEAD_REDIS_SECONDS": "10"})
    found = await examine_budgets(settings, database_url)
    return ("", "", "") if found is None else (found.verdict, found.text, found.advice)


async def test_with_a_database_budgets_are_never_passed(redis_server: RedisServer) -> None:
    verdict, text, _ = await of_budgets(redis_server.url, "postgresql://db/bridgehead")

    assert (verdict, "PostgreSQL allots" in text) == ("right", True)


async def test_without_a_database_it_says_what_redis_can_forget_and_what_helps(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        found = [await of_budgets(server.url)]
        for policy in ("everysec", "always"):
            server.command("CONFIG", "SET", "appendfsync", policy)
            server.command("CONFIG", "SET", "appendonly", "yes")
            found.append(await of_budgets(server.url))
        server.command("ACL", "SETUSER", "default", "-config")
        found.append(await of_budgets(server.url))

    assert [verdict for verdict, _, _ in found] == ["note", "note", "right", "note"]
    said = ["does not log its writes", "appendfsync everysec", "at once", "does not tell when"]
    assert [words in text for words, (_, text, _) in zip(said, found, strict=True)] == [True] * 4
    assert "BRIDGEHEAD_DATABASE_URL" in found[0][2]


async def test_a_redis_with_a_copy_can_forget_whatever_it_writes_to_its_disk(tmp_path: Path) -> None:
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with running_redis(tmp_path, *options) as server, running_redis(tmp_path) as copy:
        copy.command("REPLICAOF", "127.0.0.1", str(server.port))
        wait_until(lambda: b"connected_slaves:1" in server.command("INFO", "replication"))
        verdict, text, _ = await of_budgets(server.url)

    assert (verdict, "a copy that takes its place may lack" in text) == ("note", True)


async def test_of_a_redis_that_is_gone_nothing_more_is_said() -> None:
    assert await of_budgets(f"redis://127.0.0.1:{free_port()}/0") == ("", "", "")
