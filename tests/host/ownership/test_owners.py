"""Owners: which processes there are, where each is reached, and what becomes of entries in Redis."""

import hmac
import re
from pathlib import Path
from typing import Any

import pytest

from bridgehead.host.ownership import owners as owners_module
from bridgehead.host.ownership.owners import (
    LEASE_SECONDS,
    Owners,
    bind_peer_socket,
    is_of_other_version,
    make_name,
    node_key,
    own_address,
)
from bridgehead.host.settings import HostSettings
from bridgehead.mcp.http.server import listen
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.stores import StoreUnavailable
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import until

KEYS = (b"k" * 32, b"o" * 32)


def entry(name: str, address: str, key: bytes = KEYS[0]) -> str:
    """Write the entry of a process as it writes it itself."""
    signed = f"node\n{name}\n{address}".encode()
    return f"{address} {hmac.digest(key, signed, 'sha256').hex()}"


async def test_a_process_is_found_from_its_start_to_its_end(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        one, other = Owners(make_name(), redis, KEYS), Owners(make_name(), redis, KEYS)
        assert await other.find(one.name) is None

        await one.announce("10.0.0.1:3001")

        assert await other.find(one.name) == "10.0.0.1:3001"
        assert int(redis_server.command("PTTL", node_key(one.name))[1:]) > 0
        await one.withdraw()
        assert await other.find(one.name) == "10.0.0.1:3001", "a cached address is used without asking"
        other.forget(one.name)
        assert await other.find(one.name) is None


async def test_an_entry_is_used_only_if_a_replica_signed_it_for_that_name(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = "aaaaaaaaaaaa-3", "bbbbbbbbbbbb-3"
    good = entry(one, "10.0.0.2:1")
    forged = [
        "10.6.6.6:1",
        "10.6.6.6:1 ",
        "",
        "\xff\xfe",
        good[:-1],
        good.replace("10.0.0.2", "10.6.6.6"),
        entry(one, "10.6.6.6:1", b"x" * 32),
        entry(other, "10.6.6.6:1"),
    ]
    async with connected(redis_server.url) as redis:
        owners = Owners("cccccccccccc-3", redis, KEYS)
        for value in forged:
            redis_server.command("SET", node_key(one), value)
            assert await owners.find(one) is None
        redis_server.command("DEL", node_key(one))
        redis_server.command("LPUSH", node_key(one), "x")
        assert await owners.find(one) is None
        assert "not written by a replica" in caplog.text

        redis_server.command("DEL", node_key(one))
        redis_server.command("SET", node_key(one), entry(one, "10.0.0.3:1", KEYS[1]))  # keys rotate
        assert await owners.find(one) == "10.0.0.3:1"


async def test_a_redis_that_forgot_is_told_at_once(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            owners = Owners(make_name(), redis, KEYS)
            await owners.announce("10.0.0.1:3001")
            await until(lambda: b"10.0.0.1" in server.command("GET", node_key(owners.name)))
            server.kill()
            server.start()

            await until(lambda: b"10.0.0.1" in server.command("GET", node_key(owners.name)))
            await owners.withdraw()
            # Otherwise the next Redis that forgets would be told of a process that is gone.
            await until(lambda: owners.name.encode() not in server.command("PUBSUB", "CHANNELS"))


async def test_an_entry_that_is_lost_is_written_again_with_the_next_beat_until_the_process_ends(
    redis_server: RedisServer,
) -> None:
    async with connected(redis_server.url) as redis:
        owners = Owners(make_name(), redis, KEYS)
        key = node_key(owners.name)
        await owners.announce("10.0.0.1:3001")
        assert int(redis_server.command("PTTL", key)[1:]) > LEASE_SECONDS * 900
        redis_server.command("DEL", key)

        await until(lambda: b"10.0.0.1" in redis_server.command("GET", key))
        redis_server.command("DEL", key)
        await until(lambda: b"10.0.0.1" in redis_server.command("GET", key))
        beating = owners._beating  # noqa: SLF001 - a beat after the end would announce a dead process
        await owners.withdraw()

        assert beating is not None
        await until(beating.cancelled)
        assert redis_server.command("EXISTS", key).startswith(b":0")


async def test_a_process_that_was_never_announced_withdraws_nothing(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        await Owners("cccccccccccc-3", redis, KEYS).withdraw()

        assert redis_server.command("KEYS", "*cccccccccccc*") == b"*0\r\n"


async def test_addresses_of_many_processes_are_kept_up_to_a_limit_the_oldest_goes_first(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners_module, "_MAX_KNOWN", 2)
    async with connected(redis_server.url) as redis:
        owners = Owners(make_name(), redis, KEYS)
        names = [make_name() for _ in range(3)]
        for name in names:
            redis_server.command("SET", node_key(name), entry(name, "10.0.0.2:1"))
            assert await owners.find(name) == "10.0.0.2:1"
        for name in names:
            redis_server.command("DEL", node_key(name))

        assert [await owners.find(name) for name in names] == [None, "10.0.0.2:1", "10.0.0.2:1"]


def test_a_process_has_a_name_of_its_own_that_begins_the_ids_of_its_sessions() -> None:
    name = make_name()

    assert re.fullmatch("[0-9a-f]{12}-3", name)
    assert name != make_name()
    assert named(make_name()).owner_of(named(name).id_prefix.encode()) == name


async def test_without_redis_cached_addresses_are_still_found(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            server.command("SET", node_key("aaaaaaaaaaaa-3"), entry("aaaaaaaaaaaa-3", "10.0.0.2:1"))
            owners = Owners("cccccccccccc-3", redis, KEYS)
            assert await owners.find("aaaaaaaaaaaa-3") == "10.0.0.2:1"
            server.kill()

            assert await owners.find("aaaaaaaaaaaa-3") == "10.0.0.2:1"
            with pytest.raises(StoreUnavailable):
                await owners.find("bbbbbbbbbbbb-3")


@pytest.mark.parametrize(
    ("identifier", "owner"),
    [
        (b"bbbbbbbbbbbb-3~x", "bbbbbbbbbbbb-3"),
        (b"aaaaaaaaaaaa-3~x", None),
        (b"bbbbbbbbbbb-3~x", None),
        (b"BBBBBBBBBBBB-3~x", None),
        (b"bbbbbbbbbbbb-3", None),
        (b"bbbbbbbbbbbb-2~x", None),
        (b"bbbbbbbbbbbb.2~x", None),
        (b"", None),
    ],
)
def test_an_id_names_its_owner(identifier: bytes, owner: str | None) -> None:
    assert named("aaaaaaaaaaaa-3").owner_of(identifier) == owner


@pytest.mark.parametrize(
    ("identifier", "is_other"),
    [
        (b"bbbbbbbbbbbb.0~x", True),
        (b"bbbbbbbbbbbb.12~x", True),
        (b"bbbbbbbbbbbb-2~x", True),
        (b"bbbbbbbbbbbb-3~x", False),
        (b"bbbbbbbbbbbb~x", False),
        (b"x", False),
    ],
)
def test_an_id_of_another_version_is_recognized(identifier: bytes, *, is_other: bool) -> None:
    assert is_of_other_version(identifier) == is_other


def named(name: str) -> Owners:
    """Make owners that never ask Redis."""
    redis: Any = None
    return Owners(name, redis, KEYS)


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({}, "127.0.0.1:"),
        ({"MCP_SERVER_HOST": "0.0.0.0"}, "127.0.0.1:"),  # noqa: S104 - Redis is on this machine
        ({"BRIDGEHEAD_REPLICA_ADDRESS": "replica-7.example"}, "replica-7.example:"),
        ({"BRIDGEHEAD_REPLICA_ADDRESS": "[::1]"}, "[::1]:"),
    ],
)
def test_others_are_told_an_address_that_they_can_reach(environment: dict[str, str], shown: str) -> None:
    settings = HostSettings({"BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1:6379/0", **environment})
    with bind_peer_socket(settings) as listening:
        assert own_address(settings, listening).startswith(shown)


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({"MCP_SERVER_HOST": "127.0.0.2"}, "127.0.0.1:"),
        ({"MCP_SERVER_HOST": "[::1]"}, "127.0.0.1:"),
        ({"MCP_SERVER_HOST": "replica.example"}, "replica.example:"),
        ({"MCP_SERVER_HOST": "[2001:db8::1]"}, "[2001:db8::1]:"),
        ({"BRIDGEHEAD_REPLICA_ADDRESS": "127.0.0.1"}, "127.0.0.1:"),
        ({"MCP_SERVER_HOST": "0.0.0.0", "BRIDGEHEAD_REDIS_URL": "redis://nowhere.invalid"}, "127.0.0.1:"),  # noqa: S104
        ({"MCP_SERVER_HOST": "0.0.0.0", "BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1"}, "127.0.0.1:"),  # noqa: S104
        ({"MCP_SERVER_HOST": "[::]", "BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1"}, "127.0.0.1:"),
    ],
)
def test_the_address_follows_from_where_the_host_listens_and_where_redis_is(
    environment: dict[str, str], address: str
) -> None:
    settings = HostSettings({"BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1:6379/0", **environment})
    # Several hosts may run on one machine, so each takes any port that is free.
    with bind_peer_socket(settings) as listening, bind_peer_socket(settings) as another:
        assert own_address(settings, listening).startswith(address)
        assert own_address(settings, another) != own_address(settings, listening)


@pytest.mark.parametrize(
    ("address", "everywhere"),
    [("192.0.2.1", "0.0.0.0"), ("[2001:db8::1]", "::")],  # noqa: S104
)
def test_an_address_of_another_machine_is_announced_and_every_address_of_this_one_listened_on(
    address: str, everywhere: str
) -> None:
    settings = HostSettings({"BRIDGEHEAD_REPLICA_ADDRESS": address})
    with bind_peer_socket(settings) as listening:
        assert listening.getsockname()[0] == everywhere
        assert own_address(settings, listening).startswith(f"{address}:")


def test_a_port_that_is_taken_is_refused_with_the_setting_that_changes_it() -> None:
    with listen("0.0.0.0", 0) as taken:  # noqa: S104 - every address of this machine
        settings = HostSettings({"BRIDGEHEAD_REPLICA_ADDRESS": f"127.0.0.1:{taken.getsockname()[1]}"})
        with pytest.raises(BridgeError, match="Cannot listen for other replicas") as refused:
            bind_peer_socket(settings)
    assert "BRIDGEHEAD_REPLICA_ADDRESS" in str(refused.value.next_step)


@pytest.mark.parametrize("text", ["", "http://a", "a:b", "a/b", ":1"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    environment = {"BRIDGEHEAD_REPLICA_ADDRESS": text}
    if text:
        with pytest.raises(SettingError, match="expected a host, or a host and a port"):
            HostSettings(environment)
    else:
        assert HostSettings(environment).replica_address is None
