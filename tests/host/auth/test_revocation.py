"""Revocation with Redis alone: every host ends a token at once, whatever its own file still says."""

import asyncio
import shutil
from pathlib import Path

import pytest

from bridgehead.host.auth import token_command
from bridgehead.host.auth.revocation import CHANNEL, follow_revocations
from bridgehead.host.auth.tokens import FileTokens, TokenFile, create_token
from tests.host.conftest import Dial
from tests.host.replicas.test_replica import replicas, sharing
from tests.runtime.stores.test_redis import connected
from tests.support.host_command import add_token
from tests.support.host_server import bearer
from tests.support.http_client import HttpClient
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import call, encode, stateless
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE, until


async def post(http: HttpClient, token: str, tool: str = "alpha_echo") -> int:
    message = stateless("tools/call", call(tool, {"text": "hi"} if tool == "alpha_echo" else {}))
    headers = {**JSON_POST, **mirrored(message), **bearer(token)}
    response = await http.request("POST", "/mcp", headers, encode(message))
    await response.body()
    return response.status


def listeners(server: RedisServer) -> int:
    return int(server.command("PUBSUB", "NUMSUB", f"bridgehead:{CHANNEL}").decode().split(":")[-1])


async def test_every_replica_ends_a_token_at_once_though_its_own_file_still_has_it(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    token = add_token(tmp_path / "tokens", "ada")
    here = tmp_path / "tokens" / "host" / "tokens.json"
    there = tmp_path / "copy.json"  # what another machine still reads of a shared folder
    shutil.copy(here, there)
    shared = {"BRIDGEHEAD_AUTH": "on", **sharing(redis_server)}
    files = [{"BRIDGEHEAD_TOKENS_FILE": str(file)} for file in (here, there)]
    with replicas(tmp_path, *files, **shared) as hosts:
        https = [dial(host.port) for host in hosts]
        await until(lambda: listeners(redis_server) == 2)
        before = [await post(http, token) for http in https]
        waiting = [asyncio.create_task(post(dial(host.port), token, "alpha_wait")) for host in hosts]
        await asyncio.to_thread(token_command.main, ["revoke", "ada"], {**shared, **files[0]})
        ended = [await asyncio.wait_for(task, PATIENCE) for task in waiting]
        after = [await post(http, token) for http in https]

    assert before == [200, 200]
    assert ended == after == [401, 401]


def test_without_redis_a_token_is_revoked_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    file.add(create_token("ada", 0.0)[0])
    with running_redis(tmp_path) as server:
        url = server.url
    environment = {"BRIDGEHEAD_TOKENS_FILE": str(file.path), "BRIDGEHEAD_REDIS_URL": url}

    assert token_command.main(["revoke", "ada"], environment) == 0

    assert "is revoked" in capsys.readouterr().out
    assert file.read().tokens == ()


async def test_a_forged_notice_makes_a_host_look_and_ends_nothing(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    entry, secret = create_token("ada", 0.0)
    file.add(entry)
    tokens = FileTokens(file)
    tokens.read()
    own_id = entry.id.encode()
    forged = [own_id, own_id + b" ", b"%b %b" % (own_id, b"0" * 64), b"\xff", b"", b" "]
    async with connected(redis_server.url) as redis:
        leave = follow_revocations(redis, tokens, (b"k" * 32,))
        await until(lambda: listeners(redis_server) == 1)
        for notice in forged:
            await redis.call("PUBLISH", f"bridgehead:{CHANNEL}", notice)
            await tokens.wait()
            assert tokens.grant_of(secret) is not None

        file.revoke("ada")
        await redis.call("PUBLISH", f"bridgehead:{CHANNEL}", b"anything")
        await tokens.wait()
        assert tokens.grant_of(secret) is None
        leave()


async def test_a_token_that_was_ended_stays_so_however_often_an_old_file_is_read(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    entry, secret = create_token("ada", 0.0)
    file.add(entry)
    tokens = FileTokens(file)
    tokens.read()
    tokens.end(entry.id)
    file.add(create_token("bob", 0.0)[0])
    tokens.read()

    assert tokens.grant_of(secret) is None
    assert len(tokens) == 1
