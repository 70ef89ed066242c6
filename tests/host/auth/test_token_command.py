"""The token command and its file: made once, shown once, locked, private, and never with a secret in it."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bridgehead.host.auth import token_command
from bridgehead.host.auth.tokens import FileTokens, TokenFile, Tokens, create_token
from bridgehead.runtime.errors import BridgeError, InvalidArgument, NotFound, StorageError
from tests.support.clock import Clock
from tests.support.posix import is_private
from tests.support.stdio_peer import ROOT


class Command:
    """The command with a file of its own."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.file = TokenFile(folder / "deep" / "tokens.json")
        self._capture = capture
        self._clock = Clock()

    def __call__(self, *arguments: str) -> str:
        environment = {"BRIDGEHEAD_TOKENS_FILE": str(self.file.path)}
        assert token_command.main(list(arguments), environment, self._clock) == 0
        return self._capture.readouterr().out

    def tokens(self) -> Tokens:
        """The tokens as a host reads them."""
        tokens = FileTokens(self.file)
        tokens.read()
        return tokens


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


def test_a_token_is_shown_once_and_only_its_hash_is_kept(command: Command) -> None:
    secret = command("add", "alice").strip()
    prefix, _, random = secret.split("_", 2)

    assert prefix == "bh"
    assert random not in command.file.path.read_text()
    assert secret not in command("list") + command("list", "--json")
    grant = command.tokens().grant_of(secret)
    assert grant is not None
    assert (grant.name, grant.may_write("aoc"), grant.metrics, grant.expires) == ("alice", True, False, None)


def test_a_token_has_the_bridges_the_flag_and_the_limits_that_it_was_given(command: Command) -> None:
    secret = command(
        "add",
        "ci",
        "--bridges",
        "aoc,mercury",
        "--read-only",
        "--per-minute",
        "600",
        "--days",
        "1",
        "--metrics",
    ).strip()

    grant = command.tokens().grant_of(secret)

    assert grant is not None
    assert (grant.may_read("aoc"), grant.may_write("aoc"), grant.may_read("bitburner")) == (
        True,
        False,
        False,
    )
    assert (grant.per_minute, grant.expires, grant.metrics) == (600, 1_800_086_400.0, True)


def test_the_list_is_for_people_and_for_programs(command: Command) -> None:
    assert "There are no tokens" in command("list")
    command("add", "alice")
    command("add", "ci", "--bridges", "aoc", "--read-only", "--per-minute", "5", "--days", "0")
    alice, _ = command.file.read().tokens
    command.file.merge_uses({alice.id: 1_800_000_000.0})
    shown, data = command("list"), json.loads(command("list", "--json"))

    assert [token["last_used"] for token in data] == [1_800_000_000.0, None]
    assert ("2027-01-15 08:00" in shown, "none recorded" in shown) == (True, True)
    assert [line.split()[0] for line in shown.splitlines()] == ["NAME", "alice", "ci"]
    assert "(expired)" in shown
    assert [token["name"] for token in data] == ["alice", "ci"]
    assert not {"hash", "id"} & set(data[0])


def test_a_revoked_token_opens_nothing(command: Command) -> None:
    secret = command("add", "alice").strip()
    assert "revoked" in command("revoke", "alice")

    assert command.tokens().grant_of(secret) is None
    with pytest.raises(NotFound, match=r"There is no token for alice\. There are: none\."):
        command("revoke", "alice")


def test_a_name_is_used_once(command: Command) -> None:
    command("add", "alice")
    with pytest.raises(InvalidArgument, match="There is a token for alice already"):
        command("add", "alice")


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "a/b"),
        ("add", ""),
        ("add", "x" * 65),
        ("add", "a\nb"),
        ("add", "x", "--bridges", "moon"),
        ("add", "x", "--bridges", ""),  # `--bridges "$UNSET"` does not mean all bridges
        ("add", "x", "--bridges", " , "),
    ],
)
def test_what_cannot_be_a_token_is_refused(command: Command, arguments: tuple[str, ...]) -> None:
    with pytest.raises(BridgeError):
        command(*arguments)
    assert command.file.read().tokens == ()


@pytest.mark.parametrize("option", ["--per-minute", "--days"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "99999999999", "x"])
def test_a_number_that_cannot_be_is_refused(
    command: Command, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    with pytest.raises(SystemExit):
        command("add", "x", option, value)
    assert f"argument {option}: '{value}' is not a " in capsys.readouterr().err
    assert command.file.read().tokens == ()
    assert command("list").count("\n") == 1


def test_the_file_and_its_folder_are_private(command: Command) -> None:
    command("add", "alice")
    path = command.file.path
    assert is_private(path)
    assert is_private(path.parent)


@pytest.mark.parametrize("content", ["{", "[]", '{"tokens": [{"name": "x"}]}', '{"version": 2}', "\udc80"])
def test_a_file_that_is_none_of_tokens_is_left_alone(command: Command, content: str) -> None:
    command.file.path.parent.mkdir()
    command.file.path.write_bytes(content.encode(errors="surrogateescape"))

    with pytest.raises(StorageError, match="is not a file of tokens"):
        command("add", "alice")
    assert command.file.path.read_bytes() == content.encode(errors="surrogateescape")


def test_a_file_that_cannot_be_read_or_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="cannot be read"):
        TokenFile(tmp_path / "folder").read()
    (tmp_path / "file").write_text("")
    entry, _ = create_token("alice", 0.0)
    with pytest.raises(StorageError, match="cannot be written"):
        TokenFile(tmp_path / "file" / "tokens.json").add(entry)


def test_commands_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def add(number: int) -> int:
        imported = "import os, sys; from bridgehead.host.auth.token_command import main"
        program = f"{imported}; main(sys.argv[1:], os.environ)"
        return subprocess.run(
            [sys.executable, "-c", program, "add", f"name{number}"],
            env={"BRIDGEHEAD_TOKENS_FILE": str(tmp_path / "tokens.json"), "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            check=False,
        ).returncode

    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(add, range(8)))

    assert codes == [0] * 8
    assert {token.name for token in TokenFile(tmp_path / "tokens.json").read().tokens} == {
        f"name{number}" for number in range(8)
    }


def test_a_default_place_is_in_the_state_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token_command.main(["add", "alice"], {"BRIDGEHEAD_STATE_DIR": str(tmp_path)})
    assert capsys.readouterr().out.startswith("bh_")
    assert (tmp_path / "host" / "tokens.json").is_file()


def test_a_token_is_changed_and_keeps_what_is_not_named(command: Command) -> None:
    secret = command("add", "ci", "--bridges", "aoc", "--metrics", "--days", "1").strip()

    told = command("set", "ci", "--per-minute", "600", "--read-only", "--tools", "aoc_*,speed_*")
    grant = command.tokens().grant_of(secret)

    assert grant is not None
    assert (grant.per_minute, grant.reading, grant.full) == (600, frozenset({"aoc"}), frozenset())
    assert (grant.metrics, grant.tools) == (True, ("aoc_*", "speed_*"))
    assert grant.expires is not None
    assert "aoc_*,speed_*" in told
    command("set", "ci", "--no-read-only", "--never-expires", "--bridges", "*", "--tools", "*")
    grant = command.tokens().grant_of(secret)
    assert grant is not None
    assert (grant.expires, grant.tools, grant.may_write("mercury")) == (None, (), True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "ci"),
        ("set", "ci", "--bridges", "moon"),
        ("set", "ci", "--tools", ","),
        ("set", "no", "--admin"),
    ],
)
def test_a_change_that_says_nothing_or_names_nothing_is_refused(
    command: Command, arguments: tuple[str, ...]
) -> None:
    command("add", "ci")
    before = command.file.path.read_text()

    with pytest.raises((InvalidArgument, NotFound)):
        command(*arguments)

    assert command.file.path.read_text() == before


def test_a_rotated_token_has_a_new_secret_and_the_old_one_works_until_its_end(command: Command) -> None:
    old = command("add", "ci").strip()
    new = command("rotate", "ci", "--overlap", "1d").strip()
    tokens, now = command.tokens(), Clock().now()

    assert [tokens.grant_of(secret, now + 3600) is not None for secret in (old, new)] == [True, True]
    assert tokens.grant_of(old, now + 3600) == tokens.grant_of(new, now + 3600)
    assert [tokens.grant_of(secret, now + 86_401) is not None for secret in (old, new)] == [False, True]
    newest = command("rotate", "ci").strip()
    assert [command.tokens().grant_of(secret, now) is not None for secret in (old, new, newest)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("overlap", ["1", "d", "-1d", "1w", "²h", "999999d", "1.5h"])
def test_an_overlap_that_is_no_time_is_refused(command: Command, overlap: str) -> None:
    command("add", "ci")

    with pytest.raises(SystemExit):
        command("rotate", "ci", "--overlap", overlap)


@pytest.mark.parametrize("expires", ["1e300", "-1", "99999999999999"])
def test_an_absurd_time_in_the_file_is_named(command: Command, expires: str) -> None:
    command("add", "ci", "--days", "1")
    text = command.file.path.read_text()
    start = text.index('"expires": ') + len('"expires": ')
    end = min(place for place in (text.find(",", start), text.find("\n", start)) if place > 0)
    command.file.path.write_text(text[:start] + expires + text[end:])

    with pytest.raises(StorageError, match=r"expires"):
        command("list")
