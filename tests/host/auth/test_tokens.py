"""Tokens: the file that says who may come in, and the check of a token against it."""

import asyncio
import errno
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from bridgehead.host.auth import revocation
from bridgehead.host.auth import tokens as module
from bridgehead.host.auth.grants import EVERYTHING, Grant
from bridgehead.host.auth.revocation import TokenWatch
from bridgehead.host.auth.tokens import (
    NO_BRIDGE,
    FileTokens,
    Token,
    TokenFile,
    TokenList,
    Tokens,
    create_token,
)
from bridgehead.runtime.errors import InvalidArgument, NotFound, StorageError
from tests.support.clock import Clock
from tests.support.posix import is_private
from tests.support.waiting import PATIENCE, until

NOW = 1_800_000_000.0


class Enough(Exception):
    """What a test raises to end the watch, which has no end of its own."""


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "deep" / "host" / "tokens.json")


def added(file: TokenFile, name: str, **options: object) -> str:
    """Add a token to the file and return its secret."""
    entry, token = create_token(name, NOW, **options)
    file.add(entry)
    return token


def read(file: TokenFile) -> Tokens:
    tokens = FileTokens(file)
    tokens.read()
    return tokens


# --- making one --------------------------------------------------------------------------------------------


def test_tokens_are_long_random_and_never_the_same() -> None:
    made = [create_token("alice", NOW)[1] for _ in range(100)]

    assert len(set(made)) == 100
    for token in made:
        prefix, own_id, secret = token.split("_", 2)
        assert (prefix, len(own_id), len(secret)) == ("bh", 12, 43)


@pytest.mark.parametrize("name", ["a", "alice@example.org", "ci-2.main", "9", "a" * 64])
def test_a_name_has_letters_digits_and_a_few_signs(name: str) -> None:
    assert create_token(name, NOW)[0].name == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a\n", "ä", "a/b", "a" * 65])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="cannot be a token's name"):
        create_token(name, NOW)


def test_an_entry_says_what_its_token_opens() -> None:
    def grant(**options: object) -> Grant:
        return create_token("alice", NOW, **options)[0].grant()

    everything, only = frozenset({EVERYTHING}), frozenset({"aoc"})
    assert (grant().full, grant().reading) == (everything, frozenset())
    assert (grant(read_only=True).full, grant(read_only=True).reading) == (frozenset(), everything)
    assert (grant(bridges=("aoc",)).full, grant(bridges=("aoc",)).reading) == (only, frozenset())
    assert grant(bridges=("aoc",), read_only=True).reading == only
    assert (grant(bridges=("none",)).full, grant(bridges=("none",)).reading) == (frozenset(), frozenset())


def test_a_grant_keeps_the_limits_of_its_token() -> None:
    entry, _ = create_token("alice", NOW, metrics=True, per_minute=7, expires=NOW + 1)

    grant = entry.grant()

    assert (grant.name, grant.token_id, grant.full) == ("alice", entry.id, frozenset({EVERYTHING}))
    assert (grant.metrics, grant.per_minute, grant.expires) == (True, 7, NOW + 1)
    plain = create_token("bob", NOW)[0].grant()
    assert (plain.metrics, plain.per_minute, plain.expires, plain.may_spend) == (False, 0, None, False)


# --- the file ----------------------------------------------------------------------------------------------


def test_a_missing_file_has_no_tokens(file: TokenFile) -> None:
    assert file.read() == TokenList()


def test_entries_come_back_as_they_were_added(file: TokenFile) -> None:
    entries = [create_token(name, NOW, bridges=("aoc",), expires=NOW)[0] for name in ("alice", "bob")]
    for entry in entries:
        file.add(entry)

    assert file.read().tokens == tuple(entries)
    assert file.path.read_bytes().endswith(b"}\n")
    assert json.loads(file.path.read_bytes())["version"] == 1


def test_the_file_its_lock_and_its_folder_are_for_their_owner_alone(file: TokenFile) -> None:
    added(file, "alice")

    assert is_private(file.path.parent)
    assert is_private(file.path)
    assert is_private(Path(f"{file.path}.lock"))


def test_a_name_that_is_taken_changes_nothing(file: TokenFile) -> None:
    added(file, "alice")
    before = file.path.read_bytes()

    with pytest.raises(InvalidArgument, match="There is a token for alice already"):
        added(file, "alice")
    assert file.path.read_bytes() == before


def test_revoking_takes_out_the_one_that_was_named(file: TokenFile) -> None:
    for name in ("alice", "bob", "carol"):
        added(file, name)

    assert file.revoke("bob").name == "bob"
    assert [token.name for token in file.read().tokens] == ["alice", "carol"]


def test_whoever_revokes_a_token_that_is_not_there_hears_which_are(file: TokenFile) -> None:
    with pytest.raises(NotFound, match="There is no token for bob") as nobody:
        file.revoke("bob")
    added(file, "alice")
    added(file, "carol")
    with pytest.raises(NotFound) as others:
        file.revoke("bob")

    assert nobody.value.next_step == "There are: none."
    assert others.value.next_step == "There are: alice, carol."


def _hash_of(length: int) -> str:
    return "a" * length


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry | {"hash": _hash_of(63)},
        lambda entry: entry | {"hash": _hash_of(65)},
        lambda entry: entry | {"hash": "A" * 64},
        lambda entry: entry | {"per_minute": -1},
        lambda entry: entry | {"read-only": True},
        lambda entry: {name: value for name, value in entry.items() if name != "hash"},
    ],
)
def test_an_entry_that_cannot_be_trusted_is_refused_with_its_file(
    file: TokenFile, change: Callable[[dict[str, object]], dict[str, object]]
) -> None:
    added(file, "alice")
    content = json.loads(file.path.read_bytes())
    content["tokens"] = [change(entry) for entry in content["tokens"]]
    file.path.write_text(json.dumps(content))

    with pytest.raises(StorageError, match="is not a file of tokens"):
        file.read()


@pytest.mark.parametrize("version", [0, 2])
def test_a_file_of_another_version_is_refused(file: TokenFile, version: int) -> None:
    file.path.parent.mkdir(parents=True)
    file.path.write_text(json.dumps({"version": version, "tokens": []}))

    with pytest.raises(StorageError, match="is not a file of tokens"):
        file.read()


def test_a_file_that_is_being_changed_is_waited_for_only_so_long(
    file: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOCK_SECONDS", 0.01)
    file.path.parent.mkdir(parents=True)
    with FileLock(f"{file.path}.lock"), pytest.raises(StorageError, match="changed by another process"):
        added(file, "alice")
    assert file.read() == TokenList()


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    blocked = TokenFile(tmp_path / "file" / "tokens.json")

    with pytest.raises(StorageError, match=r"The tokens cannot be written to .*tokens\.json: "):
        added(blocked, "alice")
    if sys.platform == "win32":  # which says no more than that nothing is there
        assert blocked.read() == TokenList()
    else:
        with pytest.raises(StorageError, match=r"The tokens in .*tokens\.json cannot be read: "):
            blocked.read()


# --- the check ---------------------------------------------------------------------------------------------


def test_a_token_opens_what_its_entry_says(file: TokenFile) -> None:
    alice, bob = added(file, "alice"), added(file, "bob", read_only=True)
    tokens = read(file)

    assert len(tokens) == 2
    assert [grant and grant.name for grant in map(tokens.grant_of, (alice, bob))] == ["alice", "bob"]


def test_a_token_that_differs_in_anything_opens_nothing(file: TokenFile) -> None:
    alice, bob = added(file, "alice"), added(file, "bob")
    _, own_id, secret = alice.split("_", 2)
    _, other_id, other = bob.split("_", 2)
    tokens = read(file)

    for token in (
        "",
        "bh",
        "bh_",
        "bh__",
        secret,
        f"bh_{own_id}",
        f"bh_{own_id}_",
        f"bh_{own_id}_{other}",
        f"bh_{other_id}_{secret}",
        f"bh__{secret}",
        f"xx_{own_id}_{secret}",
        f"_{own_id}_{secret}",
        f"BH_{own_id}_{secret}",
        f"bh_{own_id.upper()}X_{secret}",
        f"bh_{own_id}_{secret}x",
        f"bh_{own_id}_{secret[:-1]}",
        f" {alice}",
        "bh_nobody_nobody",  # its hash is what an unknown id is compared with
    ):
        assert tokens.grant_of(token) is None, token
    assert tokens.grant_of(alice) is not None


def test_a_change_of_the_file_is_seen_and_a_revoked_token_is_gone(file: TokenFile) -> None:
    tokens = read(file)
    alice = added(file, "alice")
    assert tokens.grant_of(alice) is None

    tokens.refresh()
    grant = tokens.grant_of(alice)
    assert grant is not None
    assert tokens.has(grant)

    file.revoke("alice")
    tokens.refresh()
    assert tokens.grant_of(alice) is None
    assert not tokens.has(grant)


def test_a_file_that_has_not_changed_is_not_read_again(
    file: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(file, "alice")
    tokens = read(file)

    def fail(_: TokenFile) -> TokenList:
        raise AssertionError

    monkeypatch.setattr(TokenFile, "read", fail)
    tokens.refresh()
    assert len(tokens) == 1


def test_a_file_of_the_same_size_is_read_again(file: TokenFile) -> None:
    alice = added(file, "alice")
    tokens = read(file)
    content = file.path.read_bytes()
    os.utime(file.path, ns=(1000, 1000))
    tokens.refresh()
    file.path.write_bytes(content.replace(b'"alice"', b'"bobby"'))
    os.utime(file.path, ns=(2000, 2000))
    tokens.refresh()

    grant = tokens.grant_of(alice)
    assert grant is not None
    assert grant.name == "bobby"


def test_a_broken_file_leaves_the_last_tokens_and_says_why(file: TokenFile) -> None:
    assert FileTokens(file).problem == ""
    alice = added(file, "alice")
    tokens = read(file)
    good = file.path.read_bytes()
    assert tokens.problem == ""

    file.path.write_bytes(b"{")
    tokens.refresh()
    assert "is not a file of tokens" in tokens.problem
    assert tokens.grant_of(alice) is not None

    file.path.write_bytes(good + b"\n")
    tokens.refresh()
    assert tokens.problem == ""


def test_a_grant_under_the_same_name_is_another_one(file: TokenFile) -> None:
    first = read(file).grant_of(added(file, "alice")) or _grant_of_first(file)
    file.revoke("alice")
    added(file, "alice")

    assert not read(file).has(first)
    assert not read(file).has(Grant("alice", frozenset({EVERYTHING})))


def _grant_of_first(file: TokenFile) -> Grant:
    return file.read().tokens[0].grant()


# --- what is being answered --------------------------------------------------------------------------------


async def test_the_watch_finds_who_was_revoked_or_has_expired(
    file: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.001)
    for name in ("kept", "gone"):
        added(file, name)
    added(file, "ending", expires=NOW + 10)
    clock = Clock(NOW)
    watch = TokenWatch(read(file), clock)
    grants = {token.name: token.grant() for token in file.read().tokens}
    stranger = Grant("oauth:eve", frozenset({EVERYTHING}))  # of an issuer: in no file
    seen: list[list[str]] = []

    def look() -> None:
        ended = [grant for grant in (*grants.values(), stranger) if watch.has_ended(grant)]
        seen.append(sorted(str(grant.name) for grant in ended))
        if len(seen) == 1:
            file.revoke("gone")
        elif len(seen) == 2:
            clock.advance(10)
        else:
            raise Enough

    with pytest.raises(Enough):
        await asyncio.wait_for(watch.run(look), PATIENCE)
    assert seen == [[], ["gone"], ["ending", "gone"]]


async def test_the_watch_looks_now_and_then_and_not_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "WATCH_SECONDS", 10 * PATIENCE)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(TokenWatch(None, Clock(NOW)).run(lambda: pytest.fail("too soon")), 0.02)


async def test_without_a_file_only_time_ends_a_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "WATCH_SECONDS", 0.001)
    own_id = create_token("alice", NOW)[0].id
    found: list[bool] = []

    watch = TokenWatch(None, Clock(NOW))

    def look() -> None:
        found.extend(
            watch.has_ended(Grant("a", expires=time, token_id=own_id)) for time in (None, NOW + 1, NOW)
        )
        raise Enough

    with pytest.raises(Enough):
        await asyncio.wait_for(watch.run(look), PATIENCE)
    assert found == [False, False, True]


def test_entries_are_written_without_what_is_the_default(file: TokenFile) -> None:
    added(file, "alice")
    (entry,) = json.loads(file.path.read_bytes())["tokens"]

    assert sorted(entry) == ["created", "hash", "id", "name"]
    assert entry["created"] == NOW
    assert isinstance(file.read().tokens[0], Token)


@pytest.mark.parametrize("field", ["may_spend", "events", "dashboard", "admin"])
@pytest.mark.parametrize("bridges", [(), ("aoc",), (NO_BRIDGE,)])
def test_each_right_is_written_by_its_name_and_comes_back(
    tmp_path: Path, field: str, bridges: tuple[str, ...]
) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    token, _ = create_token("one", NOW, bridges=bridges, **{field: True})
    file.add(token)

    (written,) = json.loads(file.path.read_bytes())["tokens"]
    assert (written[field], tuple(written.get("bridges", ()))) == (True, bridges)
    assert file.read().tokens == (token,)


def test_rights_in_the_form_of_an_older_version_are_refused_and_can_be_revoked(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    kept, _ = create_token("kept", NOW)
    file.add(kept)
    file.add(create_token("watcher", NOW, bridges=("*", "right:events"))[0])

    with pytest.raises(StorageError, match="right:events among its bridges") as refusal:
        file.read()
    tokens = FileTokens(file)
    tokens.read()

    assert "bridgehead token revoke watcher" in str(refusal.value)
    assert "The token watcher in" in tokens.problem
    assert len(tokens) == 0
    file.revoke("watcher")
    assert file.read().tokens == (kept,)


def test_a_token_has_only_the_rights_that_it_was_given(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    file.add(create_token("plain", NOW)[0])
    grant = file.read().tokens[0].grant()

    assert (grant.full, grant.reading, grant.per_minute) == (frozenset({"*"}), frozenset(), 0)
    rights = [grant.metrics, grant.may_spend, grant.events, grant.dashboard, grant.admin]
    assert rights == [False] * 5


async def test_a_file_in_a_folder_of_its_own_is_private_and_not_known_until_it_is_read(
    tmp_path: Path,
) -> None:
    file = TokenFile(tmp_path / "host" / "tokens.json")
    file.add(create_token("one", NOW)[0])
    tokens = FileTokens(file)

    assert file.where == str(tmp_path / "host" / "tokens.json")
    if sys.platform != "win32":
        assert file.path.parent.stat().st_mode & 0o777 == 0o700
    assert not tokens.is_known
    tokens.read()
    assert tokens.is_known


# --- tokens that are revoked elsewhere ---------------------------------------------------------------------


async def test_a_token_that_was_ended_stays_so_though_its_file_still_has_it(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    alice, bob = added(file, "alice"), added(file, "bob")
    tokens = FileTokens(file)
    tokens.read()
    own_id = alice.split("_")[1]
    found = tokens.find(own_id)
    assert found is not None
    assert found[1].name == "alice"

    tokens.end(own_id)
    assert (tokens.grant_of(alice), tokens.find(own_id), len(tokens)) == (None, None, 1)
    added(file, "cleo")
    tokens.read()
    assert tokens.grant_of(alice) is None
    assert [token.grant.name for token in tokens.listed] == ["bob", "cleo"]
    assert tokens.grant_of(bob) is not None

    file.revoke("alice")
    tokens.read()
    assert tokens._ended == set()  # noqa: SLF001 - what cannot come again is not remembered


async def test_whoever_watches_hears_of_an_end_at_once_and_once(tmp_path: Path) -> None:
    tokens = FileTokens(TokenFile(tmp_path / "tokens.json"))
    waiting = asyncio.create_task(tokens._wait_until_due(PATIENCE))  # noqa: SLF001
    await asyncio.sleep(0.01)
    assert not waiting.done()
    tokens.end("of another process")

    assert await waiting is True
    assert await tokens._wait_until_due(0.01) is False  # noqa: SLF001


async def test_the_same_tokens_are_no_change(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    added(file, "alice")
    tokens = FileTokens(file)

    assert tokens._replace(file.read())
    assert not tokens._replace(file.read())
    assert tokens._replace(TokenList())


async def test_a_token_has_ended_when_it_was_revoked_or_has_expired(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    long, short = (added(file, name, expires=ends).split("_")[1] for name, ends in (("b", None), ("a", NOW)))
    tokens = FileTokens(file)
    tokens.read()

    assert [tokens.has_ended(short, NOW - 1), tokens.has_ended(short, NOW)] == [False, True]
    assert not tokens.has_ended(long, NOW)
    assert tokens.has_ended("revoked", NOW)
    assert tokens.has_ended("", NOW) is False  # of another issuer
    assert [token.grant.name for token in tokens.listed] == ["a", "b"]


async def test_a_watch_looks_when_it_is_told_to(tmp_path: Path) -> None:
    tokens = FileTokens(TokenFile(tmp_path / "tokens.json"))
    looking = asyncio.create_task(tokens.wait())
    for _ in range(9):
        await asyncio.sleep(0)
    assert not looking.done()
    tokens.look_soon()
    await asyncio.wait_for(looking, PATIENCE)


async def test_uses_that_cannot_be_saved_wait_for_the_next_time_and_are_reported_once(
    file: TokenFile, caplog: pytest.LogCaptureFixture
) -> None:
    own_id = added(file, "alice").split("_")[1]
    tokens = read(file)
    tokens.note_use(own_id, NOW)
    store = file.path.parent
    moved = store.rename(store.with_name("moved"))
    store.touch()  # a file in the place of the folder: nothing can be written
    for _ in range(3):
        await tokens.save_uses()
    store.unlink()
    moved.rename(store)
    assert tokens.last_uses == {own_id: NOW}
    assert file.merge_uses({}) == {}

    tokens.note_use(own_id, NOW + 1)
    await tokens.save_uses()

    assert file.merge_uses({}) == tokens.last_uses == {own_id: NOW + 1}
    assert [each.message for each in caplog.records].count("the last uses of tokens cannot be saved") == 1


async def test_uses_are_saved_when_the_host_ends(file: TokenFile) -> None:
    own_id = added(file, "alice").split("_")[1]
    tokens = read(file)
    saving = asyncio.create_task(tokens.keep_uses())
    await asyncio.sleep(0)
    tokens.note_use(own_id, NOW)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving

    assert file.merge_uses({}) == {own_id: NOW}
    assert is_private(file.path.with_suffix(".uses.json"))


async def test_a_use_during_a_save_is_saved_the_next_time_and_others_are_not_saved_again(
    file: TokenFile,
) -> None:
    alice, bob = (added(file, name).split("_")[1] for name in ("alice", "bob"))
    tokens = read(file)
    tokens.note_use(alice, NOW)
    tokens.note_use(bob, NOW)
    saving = asyncio.create_task(tokens.save_uses())
    await asyncio.sleep(0)  # it has taken what there is
    tokens.note_use(alice, NOW + 1)
    await saving
    assert file.merge_uses({}) == {alice: NOW, bob: NOW}

    await tokens.save_uses()
    assert file.merge_uses({}) == {alice: NOW + 1, bob: NOW}
    saved = file.path.with_suffix(".uses.json")
    written = saved.stat().st_mtime_ns
    await tokens.save_uses()
    assert saved.stat().st_mtime_ns == written


async def test_uses_are_saved_now_and_then_and_not_all_the_time(file: TokenFile) -> None:
    own_id = added(file, "alice").split("_")[1]
    tokens = read(file)
    tokens.note_use(own_id, NOW)
    saving = asyncio.create_task(tokens.keep_uses())
    await until(lambda: file.merge_uses({}) == {own_id: NOW})
    tokens.note_use(own_id, NOW + 1)
    for _ in range(50):  # long enough for many saves
        await asyncio.to_thread(file.merge_uses, {})

    assert file.merge_uses({}) == {own_id: NOW}
    saving.cancel()
    await asyncio.wait([saving])


def test_a_broken_file_of_uses_is_replaced_and_keeps_nobody_out(file: TokenFile) -> None:
    token = added(file, "alice")
    own_id = token.split("_")[1]
    file.path.with_suffix(".uses.json").write_text("{")

    assert read(file).grant_of(token) is not None
    assert file.merge_uses({}) == {}
    assert file.merge_uses({own_id: NOW}) == {own_id: NOW}


# --- a full disk -------------------------------------------------------------------------------------------


def fill(monkeypatch: pytest.MonkeyPatch, code: int = errno.ENOSPC) -> None:
    """Let no file be made any more."""

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("bridgehead.runtime.durable.replace", fail)


def test_a_token_is_revoked_although_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    alice, bob = added(file, "alice"), added(file, "bob")
    tokens = FileTokens(file)
    tokens.read()
    with monkeypatch.context() as full:
        fill(full)
        assert file.revoke("alice").name == "alice"
        with pytest.raises(StorageError):
            added(file, "cleo")
        with pytest.raises(NotFound):
            file.revoke("alice")
    tokens.read()
    assert tokens.grant_of(alice) is None
    assert tokens.grant_of(bob) is not None
    assert [token.name for token in file.read().tokens] == ["bob"]

    added(file, "alice")  # the name is free, and the entry goes with the next change
    assert b'"0000' not in file.path.read_bytes()


def test_a_disk_that_fails_otherwise_revokes_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    added(file, "alice")
    fill(monkeypatch, errno.EROFS)
    with pytest.raises(StorageError):
        file.revoke("alice")
    assert [token.name for token in file.read().tokens] == ["alice"]


def test_a_revocation_that_is_not_on_the_disk_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    added(file, "alice")
    fill(monkeypatch)

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr("bridgehead.runtime.durable.flush", fail)
    with pytest.raises(StorageError):
        file.revoke("alice")
