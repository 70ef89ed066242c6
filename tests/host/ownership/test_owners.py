"""Owners: which processes there are, where each is reached, and what becomes of entries in Redis."""

from pathlib import Path

import pytest

from bridgehead.host.ownership.owners import (
    Owners,
    bind_peer_socket,
    local_address,
    make_host_name,
    node_key,
    own_address,
)
from bridgehead.host.settings import HostSettings
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.stores import StoreUnavailable
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import until


async def test_a_process_is_found_from_its_start_to_its_end(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        one, other = Owners(make_host_name(), redis=redis), Owners(make_host_name(), redis=redis)
        assert await other.find(one.name) is None

        await one.announce("10.0.0.1:3001")

        assert await other.find(one.name) == "10.0.0.1:3001"
        assert int(redis_server.command("PTTL", node_key(one.name))[1:]) > 0
        await one.withdraw()
        assert await other.find(one.name) == "10.0.0.1:3001", "a cached address is used without asking"
        other.forget(one.name)
        assert await other.find(one.name) is None


async def test_a_redis_that_forgot_is_told_at_once(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            owners = Owners(make_host_name(), redis=redis)
            await owners.announce("10.0.0.1:3001")
            await until(lambda: b"10.0.0.1" in server.command("GET", node_key(owners.name)))
            server.kill()
            server.start()

            await until(lambda: b"10.0.0.1" in server.command("GET", node_key(owners.name)))
            await owners.withdraw()


async def test_without_redis_siblings_and_cached_addresses_are_still_found(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            server.command("SET", node_key("aaaaaaaaaaaa.0"), "10.0.0.2:1")
            owners = Owners("cccccccccccc", 0, ("127.0.0.1:1", "127.0.0.1:2"), redis)
            assert await owners.find("aaaaaaaaaaaa.0") == "10.0.0.2:1"
            server.kill()

            assert await owners.find("aaaaaaaaaaaa.0") == "10.0.0.2:1"
            assert await owners.find("cccccccccccc.1") == "127.0.0.1:2"
            with pytest.raises(StoreUnavailable):
                await owners.find("bbbbbbbbbbbb.0")


async def test_workers_know_each_other_without_redis() -> None:
    owners = Owners("cccccccccccc", 1, ("127.0.0.1:1", "127.0.0.1:2"))

    assert (owners.name, owners.siblings) == ("cccccccccccc.1", ["cccccccccccc.0"])
    assert await owners.find("cccccccccccc.0") == "127.0.0.1:1"
    assert await owners.find("cccccccccccc.2") is None


@pytest.mark.parametrize(
    ("identifier", "owner"),
    [
        (b"bbbbbbbbbbbb.0~x", "bbbbbbbbbbbb.0"),
        (b"aaaaaaaaaaaa.12~x", "aaaaaaaaaaaa.12"),
        (b"aaaaaaaaaaaa.0~x", None),
        (b"bbbbbbbbbbb.0~x", None),
        (b"BBBBBBBBBBBB.0~x", None),
        (b"bbbbbbbbbbbb.0", None),
        (b"", None),
    ],
)
def test_an_id_names_its_owner(identifier: bytes, owner: str | None) -> None:
    assert Owners("aaaaaaaaaaaa").owner_of(identifier) == owner


@pytest.mark.parametrize(
    ("environment", "shown", "inside"),
    [
        ({}, "127.0.0.1:", "127.0.0.1:"),
        ({"MCP_SERVER_HOST": "0.0.0.0"}, "127.0.0.1:", "127.0.0.1:"),  # noqa: S104 - Redis is on this machine
        ({"BRIDGEHEAD_REPLICA_ADDRESS": "replica-7.example"}, "replica-7.example:", "127.0.0.1:"),
        ({"BRIDGEHEAD_REPLICA_ADDRESS": "[::1]"}, "[::1]:", "[::1]:"),
    ],
)
def test_others_are_told_an_address_that_they_can_reach(
    environment: dict[str, str], shown: str, inside: str
) -> None:
    settings = HostSettings({"BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1:6379/0", **environment})
    with bind_peer_socket(settings) as listening:
        assert own_address(settings, listening).startswith(shown)
        assert local_address(listening).startswith(inside)


@pytest.mark.parametrize("text", ["", "http://a", "a:b", "a/b", ":1"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    environment = {"BRIDGEHEAD_REPLICA_ADDRESS": text}
    if text:
        with pytest.raises(SettingError, match="expected a host, or a host and a port"):
            HostSettings(environment)
    else:
        assert HostSettings(environment).replica_address is None
