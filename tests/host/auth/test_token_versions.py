"""The token file over versions: 0.1 reads that of this version, and an unknown right opens nothing."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta, Struct

from bridgehead.host.auth.tokens import (
    NO_BRIDGE,
    FileTokens,
    TokenFile,
    create_token,
)

NOW = 1_800_000_000.0


class TokenOf01(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """An entry as version 0.1 declares and reads it (revision 1941f07)."""

    id: str
    name: str
    hash: str
    created: float
    bridges: tuple[str, ...] = ()
    read_only: bool = False
    metrics: bool = False
    per_minute: Annotated[int, Meta(ge=0)] = 0
    expires: float | None = None


class FileOf01(Struct, frozen=True, forbid_unknown_fields=True):
    tokens: tuple[TokenOf01, ...] = ()
    version: Annotated[int, Meta(ge=1, le=1)] = 1


def test_version_0_1_reads_a_file_with_every_right_of_this_version(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    file.add(create_token("all", 0.0)[0])
    file.add(create_token("spender", 0.0, read_only=True, may_spend=True)[0])
    file.add(create_token("one", 0.0, bridges=("aoc",), may_spend=True, events=True)[0])
    file.add(create_token("watcher", 0.0, bridges=(NO_BRIDGE,), events=True)[0])

    read = msgspec.json.decode(file.path.read_bytes(), type=FileOf01)

    opened = {token.name: set(token.bridges or ("*",)) - {"none"} for token in read.tokens}
    assert {name: {one for one in bridges if ":" not in one} for name, bridges in opened.items()} == {
        "all": {"*"},
        "spender": {"*"},
        "one": {"aoc"},
        "watcher": set(),
    }
    ours = {token.name: token for token in file.read().tokens}
    assert (ours["spender"].may_spend, ours["spender"].bridges) == (True, ())
    assert (ours["one"].may_spend, ours["one"].events, ours["one"].bridges) == (True, True, ("aoc",))
    assert not ours["watcher"].grant().may_read("aoc")


@pytest.mark.parametrize(
    ("right", "field"),
    [
        ("right:spend", "may_spend"),
        ("right:events", "events"),
        ("right:dashboard", "dashboard"),
        ("right:admin", "admin"),
    ],
)
@pytest.mark.parametrize("bridges", [(), ("aoc",), (NO_BRIDGE,)])
def test_each_right_stands_among_the_bridges_and_comes_back(
    tmp_path: Path, right: str, field: str, bridges: tuple[str, ...]
) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    token, _ = create_token("one", NOW, bridges=bridges, **{field: True})
    file.add(token)

    (written,) = msgspec.json.decode(file.path.read_bytes(), type=FileOf01).tokens
    assert written.bridges == (*(bridges or ("*",)), right)
    assert file.read().tokens == (token,)


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


def test_a_right_that_this_version_does_not_know_opens_nothing(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    file.add(create_token("later", 0.0, bridges=("aoc", "right:fly"))[0])
    file.add(create_token("only", 0.0, bridges=("right:fly",))[0])
    later, only = (token.grant() for token in file.read().tokens)

    assert later.full == {"aoc"}
    assert (only.full, only.reading, only.metrics, only.may_spend, only.events) == (
        frozenset(),
        frozenset(),
        False,
        False,
        False,
    )
