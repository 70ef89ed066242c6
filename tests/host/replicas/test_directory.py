"""The directory of processes: who lives, where each is reached, and what becomes of entries."""

from pathlib import Path

import pytest

from bridgehead.host.replicas.directory import Directory, node_key, open_door, own_address, within_machine
from bridgehead.host.settings import HostSettings
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.stores import StoreUnavailable
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import until


async def test_a_process_is_found_from_its_start_to_its_end(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        one, other = Directory(redis), Directory(redis)
        assert await other.find(one.node) is None

        await one.start("10.0.0.1:3001")

        await until(lambda: b"10.0.0.1" in redis_server.command("GET", node_key(one.node)))
        assert await other.find(one.node) == "10.0.0.1:3001"
        assert int(redis_server.command("PTTL", node_key(one.node))[1:]) > 0
        await one.stop()
        assert await other.find(one.node) == "10.0.0.1:3001", (
            "an address that is known is not asked for again"
        )
        other.forget(one.node)
        assert await other.find(one.node) is None


async def test_a_redis_that_forgot_is_told_at_once(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            directory = Directory(redis)
            await directory.start("10.0.0.1:3001")
            await until(lambda: b"10.0.0.1" in server.command("GET", node_key(directory.node)))
            server.kill()
            server.start()

            await until(lambda: b"10.0.0.1" in server.command("GET", node_key(directory.node)))
            await directory.stop()


async def test_without_redis_what_is_known_is_still_found(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            server.command("SET", node_key("aaaaaaaaaaaa"), "10.0.0.2:1")
            directory = Directory(redis)
            assert await directory.find("aaaaaaaaaaaa") == "10.0.0.2:1"
            server.kill()

            assert await directory.find("aaaaaaaaaaaa") == "10.0.0.2:1"
            with pytest.raises(StoreUnavailable):
                await directory.find("bbbbbbbbbbbb")


@pytest.mark.parametrize(
    ("environment", "shown", "inside"),
    [
        ({}, "127.0.0.1:", "127.0.0.1"),
        ({"MCP_SERVER_HOST": "0.0.0.0"}, "127.0.0.1:", "127.0.0.1"),  # noqa: S104 - Redis is on this machine
        ({"BRIDGEHEAD_REPLICA_ADDRESS": "replica-7.example"}, "replica-7.example:", "127.0.0.1"),
        ({"BRIDGEHEAD_REPLICA_ADDRESS": "[::1]"}, "[::1]:", "[::1]"),
    ],
)
def test_others_are_told_an_address_that_they_can_reach(
    environment: dict[str, str], shown: str, inside: str
) -> None:
    settings = HostSettings({"BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1:6379/0", **environment})
    with open_door(settings) as door:
        assert own_address(settings, door).startswith(shown)
        assert within_machine(door) == inside


@pytest.mark.parametrize("text", ["", "http://a", "a:b", "a/b", ":1"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    environment = {"BRIDGEHEAD_REPLICA_ADDRESS": text}
    if text:
        with pytest.raises(SettingError, match="expected a host, or a host and a port"):
            HostSettings(environment)
    else:
        assert HostSettings(environment).replica_address is None
