"""Token database: the same as the file for whoever adds and revokes, and heard of at once by every host."""

import asyncio
import time
from pathlib import Path

import pytest

from bridgehead.commands import db
from bridgehead.host.auth import token_command
from bridgehead.host.auth.token_database import TokenDatabase
from bridgehead.host.auth.tokens import TokenFile, TokenStore, create_token
from bridgehead.runtime.errors import InvalidArgument, NotFound
from tests.support.host_command import Command, serving
from tests.support.host_server import bearer, hosting
from tests.support.http_client import HttpClient
from tests.support.messages import call
from tests.support.postgres_server import PostgresServer
from tests.support.waiting import PATIENCE

NOW = 1_800_000_000.0
Environment = dict[str, str]


@pytest.fixture
def environment(database_url: str) -> Environment:
    found = {"BRIDGEHEAD_DATABASE_URL": database_url, "BRIDGEHEAD_AUTH": "on"}
    db.main(["migrate"], found)
    return found


@pytest.fixture(params=["file", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStore:
    if request.param == "file":
        return TokenFile(tmp_path / "tokens.json")
    return TokenDatabase(request.getfixturevalue("environment")["BRIDGEHEAD_DATABASE_URL"])


def test_entries_come_back_as_they_were_added(store: TokenStore) -> None:
    entries = [
        create_token("alice", NOW)[0],
        create_token("ci", NOW + 1, bridges=("aoc",), read_only=True, per_minute=60, expires=NOW + 9)[0],
    ]
    before = store.read().tokens
    for entry in entries:
        store.add(entry)

    assert before == ()
    assert list(store.read().tokens) == entries


def test_a_name_that_is_taken_changes_nothing(store: TokenStore) -> None:
    first, second = create_token("alice", NOW)[0], create_token("alice", NOW)[0]
    store.add(first)

    with pytest.raises(InvalidArgument, match="There is a token for alice already"):
        store.add(second)

    assert store.read().tokens == (first,)


def test_revoking_takes_out_the_one_that_was_named(store: TokenStore) -> None:
    alice, bob = create_token("alice", NOW)[0], create_token("bob", NOW)[0]
    store.add(alice)
    store.add(bob)

    assert store.revoke("alice") == alice
    assert store.read().tokens == (bob,)
    with pytest.raises(NotFound, match="There are: bob"):
        store.revoke("alice")


def test_the_last_use_of_a_token_is_kept_until_it_is_revoked(store: TokenStore) -> None:
    alice, bob = create_token("alice", NOW)[0], create_token("bob", NOW)[0]
    store.add(alice)
    store.add(bob)
    before = store.merge_uses({})
    first = store.merge_uses({alice.id: NOW + 2, bob.id: NOW + 1, "of no token": NOW})
    later = store.merge_uses({alice.id: NOW + 1, bob.id: NOW + 3})  # an earlier use of alice changes nothing
    store.revoke("bob")
    after = store.merge_uses({bob.id: NOW + 4, alice.id: NOW})

    assert before == {}
    assert first == {alice.id: NOW + 2, bob.id: NOW + 1}
    assert later == {alice.id: NOW + 2, bob.id: NOW + 3}
    assert after == store.merge_uses({}) == {alice.id: NOW + 2}


async def test_a_host_that_ends_saves_when_a_token_was_last_used(
    environment: Environment, tmp_path: Path
) -> None:
    store = TokenDatabase(environment["BRIDGEHEAD_DATABASE_URL"])
    entry, secret = create_token("alice", NOW)
    await asyncio.to_thread(store.add, entry)
    async with hosting(tmp_path, environment) as host:
        assert (await host.try_call("/alpha/mcp", "alpha_echo", bearer(secret))).status == 200

    assert (await asyncio.to_thread(store.merge_uses, {}))[entry.id] >= NOW


def test_the_database_holds_only_the_hash_of_a_secret(
    environment: Environment, postgres_server: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    token_command.main(["add", "alice"], environment)
    secret = capsys.readouterr().out.strip().splitlines()[0].split("_", 2)[2]
    url = environment["BRIDGEHEAD_DATABASE_URL"]

    postgres_server.execute(
        f"do $$ begin if exists (select from host_tokens where entry::text like '%{secret}%') "
        "then raise exception 'found'; end if; end $$",
        url.rpartition("/")[2],
    )
    assert [token.name for token in TokenDatabase(url).read().tokens] == ["alice"]


async def test_every_host_takes_a_token_over_and_ends_what_a_revoked_one_is_being_answered(
    environment: Environment, tmp_path: Path
) -> None:
    store = TokenDatabase(environment["BRIDGEHEAD_DATABASE_URL"])
    first, secret = create_token("alice", NOW)
    await asyncio.to_thread(store.add, first)
    async with hosting(tmp_path / "a", environment) as one, hosting(tmp_path / "b", environment) as other:
        late, late_secret = create_token("bob", NOW)
        await asyncio.to_thread(store.add, late)
        for host in (one, other):
            async with asyncio.timeout(PATIENCE):
                while (await host.try_call("/alpha/mcp", "alpha_echo", bearer(late_secret))).status != 200:
                    await asyncio.sleep(0.01)
        hosts, show = (one, other), bearer(secret)
        wait = call("alpha_wait", {})
        waiting = [asyncio.create_task(host.post_call("/alpha/mcp", wait, show)) for host in hosts]
        await asyncio.to_thread(store.revoke, "alice")
        ended = [(await task).status for task in waiting]
        after = [(await host.try_call("/alpha/mcp", "alpha_echo", show)).status for host in hosts]

    assert ended == after == [401, 401]


def test_replicas_as_processes_refuse_a_revoked_token_within_a_second(
    environment: Environment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token_command.main(["add", "alice"], environment)
    secret = capsys.readouterr().out.strip().splitlines()[0]

    async def statuses(*hosts: Command) -> list[int]:
        found = []
        for host in hosts:
            client = HttpClient(host.port)
            response = await client.request("GET", "/metrics", {"Content-Length": None, **bearer(secret)})
            await response.body()
            await client.close()
            found.append(response.status)
        return found

    with (
        serving(tmp_path / "a", settings=environment) as one,
        serving(tmp_path / "b", settings=environment) as other,
    ):
        before = asyncio.run(statuses(one, other))
        token_command.main(["revoke", "alice"], environment)
        begin = time.monotonic()
        for host in (one, other):  # one after the other: who is asked too often with a bad token says 429
            while asyncio.run(statuses(host)) != [401]:
                assert time.monotonic() - begin < PATIENCE

    assert before == [403, 403]  # known, and not allowed to see metrics


async def test_a_host_starts_without_its_database_and_lets_callers_in_when_it_is_there(
    breakable_postgres: PostgresServer, tmp_path: Path
) -> None:
    environment = {"BRIDGEHEAD_DATABASE_URL": breakable_postgres.url, "BRIDGEHEAD_AUTH": "on"}
    await asyncio.to_thread(db.main, ["migrate"], environment)
    entry, secret = create_token("alice", NOW)
    await asyncio.to_thread(TokenDatabase(breakable_postgres.url).add, entry)
    await asyncio.to_thread(breakable_postgres.kill)
    async with hosting(tmp_path, environment) as host:
        refused = await host.try_call("/alpha/mcp", "alpha_echo", bearer(secret))
        ready = await host.get("/readyz")
        await asyncio.to_thread(breakable_postgres.start)
        async with asyncio.timeout(PATIENCE):
            while (await host.try_call("/alpha/mcp", "alpha_echo", bearer(secret))).status != 200:
                await asyncio.sleep(0.02)
        stranger = await host.try_call("/alpha/mcp", "alpha_echo", bearer("bh_no_token"))
        ready_again = await host.get("/readyz")

    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert "cannot read its tokens yet" in (await refused.json())["error"]["message"]
    assert (ready.status, ready_again.status, stranger.status) == (503, 200, 401)


async def test_the_last_tokens_stay_valid_while_the_database_is_gone_and_changes_come_after(
    breakable_postgres: PostgresServer, tmp_path: Path
) -> None:
    environment = {"BRIDGEHEAD_DATABASE_URL": breakable_postgres.url, "BRIDGEHEAD_AUTH": "on"}
    await asyncio.to_thread(db.main, ["migrate"], environment)
    store = TokenDatabase(breakable_postgres.url)
    entry, secret = create_token("alice", NOW)
    await asyncio.to_thread(store.add, entry)
    async with hosting(tmp_path, environment) as host:
        await asyncio.to_thread(breakable_postgres.kill)
        during = (await host.try_call("/alpha/mcp", "alpha_echo", bearer(secret))).status
        ready = await host.page("/readyz", bearer(secret))
        await asyncio.to_thread(breakable_postgres.start)
        await asyncio.to_thread(store.revoke, "alice")
        async with asyncio.timeout(PATIENCE):
            while (await host.try_call("/alpha/mcp", "alpha_echo", bearer(secret))).status != 401:
                await asyncio.sleep(0.02)

    assert during == 200
    assert ready["status"] == "ready" or not ready["stores"]["postgresql"]["up"]


async def test_behind_a_bouncer_a_token_that_is_added_or_revoked_is_noticed_without_being_told(
    pooled_url: str, tmp_path: Path
) -> None:
    environment = {"BRIDGEHEAD_DATABASE_URL": pooled_url, "BRIDGEHEAD_AUTH": "on"}
    await asyncio.to_thread(db.main, ["migrate"], environment)
    store = TokenDatabase(pooled_url)
    await asyncio.to_thread(store.add, create_token("bob", NOW)[0])
    async with hosting(tmp_path / "a", environment) as one, hosting(tmp_path / "b", environment) as other:
        entry, secret = create_token("alice", NOW)
        for change, status in ((lambda: store.add(entry), 200), (lambda: store.revoke("alice"), 401)):
            await asyncio.to_thread(change)
            for host in (one, other):
                async with asyncio.timeout(PATIENCE):
                    while (await host.try_call("/alpha/mcp", "alpha_echo", bearer(secret))).status != status:
                        await asyncio.sleep(0.3)  # who is asked too often with a bad token says 429
