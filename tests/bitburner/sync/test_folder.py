"""Folder: which names may lie in it, and that what is read holds still."""

from pathlib import Path

import pytest

from bridgehead.bitburner.sync.folder import Folder
from bridgehead.bitburner.sync.planning import Rules
from bridgehead.runtime.errors import InvalidArgument
from tests.bitburner.sync.syncing import HOME, synced
from tests.support.game import Game
from tests.support.posix import fcntl


async def test_what_is_ignored_or_cannot_be_in_the_game_is_left_out(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        one.put(".bridgeheadignore", "# ours\nsecret*\nbuild/\n")
        for name in ("secret.js", "build/out.js", ".git/config", "node_modules/x/a.js", "a b.js", "c.exe"):
            one.put(name, "1")
        (one.root / "binary.txt").write_bytes(b"\xff\xfe")
        await one.sync.run_once()

        assert one.play.game.servers["home"] == HOME
        assert set(one.folder.left_out) == {"a b.js", "c.exe", "binary.txt"}


@pytest.mark.parametrize(
    "name", ["../outside.js", "a/../../outside.js", "..", "a//b.js", ".bridgehead/../../x.js"]
)
async def test_a_name_that_leads_out_of_the_folder_is_never_written(tmp_path: Path, name: str) -> None:
    """A web page can pose as a game, and a save can come from anybody."""
    async with synced(tmp_path, game=Game(3, {"home": {**HOME, name: "// planted\n"}})) as one:
        await one.sync.run_once()

        assert one.files == HOME
        assert {path.name for path in tmp_path.iterdir()} == {"scripts", "state"}
        assert name in one.folder.left_out


@pytest.mark.parametrize(
    "name", ["aux.js", "lib/CON.txt", "com1.tar.js", "a:b.js", "C:/x.js", "a./b.js", "nul/b.js", "a<b>.js"]
)
async def test_on_windows_a_name_that_means_something_else_there_is_never_written(
    tmp_path: Path, name: str
) -> None:
    async with synced(tmp_path, game=Game(3, {"home": {**HOME, name: "// planted\n"}})) as one:
        one.use(Folder(one.root, ("home",), is_windows=True))
        await one.sync.run_once()

        assert one.files == HOME
        assert one.folder.left_out == {name: "Windows cannot have a file of this name."}


@pytest.mark.parametrize("name", ["auxiliary.js", "lib/console.txt", "com.js", "a.b.js", "com10.js"])
def test_other_names_are_files_on_windows_too(tmp_path: Path, name: str) -> None:
    assert Folder(tmp_path, ("home",), is_windows=True).accepts(("home", name))


@pytest.mark.parametrize("pair", [("a.js", "A.js"), ("lib/a.js", "LIB/A.js"), ("\u00e9.js", "\u00c9.js")])
async def test_where_case_is_ignored_names_that_differ_only_in_it_never_share_a_file(
    tmp_path: Path, pair: tuple[str, str]
) -> None:
    first, second = sorted(pair)
    game = Game(3, {"home": {first: "// first\n", second: "// second\n"}})
    async with synced(tmp_path, game=game) as one:
        one.use(Folder(one.root, ("home",), ignores_case=True))
        await one.sync.run_once()
        await one.sync.run_once()

        assert one.files == {first: "// first\n"}
        assert game.servers["home"] == {first: "// first\n", second: "// second\n"}
        assert one.folder.left_out[second].startswith("Only its case tells it from")


async def test_where_case_is_ignored_a_file_has_the_name_that_the_game_gives_it(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        one.use(Folder(one.root, ("home",), ignores_case=True))
        one.put("LIB/Tools.js", "// tools\n")
        await one.sync.run_once()

        assert one.play.game.servers["home"] == HOME


@pytest.mark.parametrize("name", [".Bridgehead/state.json", ".GIT/hooks.js", "TSConfig.json"])
async def test_where_case_is_ignored_our_own_files_are_protected_in_any_case(
    tmp_path: Path, name: str
) -> None:
    async with synced(tmp_path, game=Game(3, {"home": {**HOME, name: "// planted\n"}})) as one:
        one.use(Folder(one.root, ("home",), ignores_case=True))
        await one.sync.run_once()

        assert one.files == HOME


async def test_a_second_copy_of_itself_is_refused(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        with (
            pytest.raises(InvalidArgument, match="Another sync is running"),
            Folder(one.root, ("home",)).locked(),
        ):
            pass


async def test_a_file_that_changes_while_it_is_read_is_read_when_it_holds_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with synced(tmp_path) as one:
        one.put("mine.js", "whole")
        path, reads = one.root / "mine.js", 0
        original = Path.read_bytes

        def torn(self: Path) -> bytes:
            nonlocal reads
            if self == path:
                reads += 1
                if reads < 3:
                    path.write_text("whole" * reads, encoding="utf-8")
                    return b"who"
            return original(self)

        monkeypatch.setattr(Path, "read_bytes", torn)
        await one.sync.run_once()

        assert one.play.game.servers["home"]["mine.js"] == "whole" * 2


def test_a_folder_is_known_by_the_letters_that_the_disk_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On macOS changes are told by these, whatever case the folder was named in."""
    there = str(tmp_path / "Scripts").encode()
    monkeypatch.setattr(fcntl, "F_GETPATH", 50, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda *_: there.ljust(1024, b"\0"))
    folder = Folder(tmp_path / "scripts", ("home",))

    with folder.locked():
        assert folder.root == tmp_path / "Scripts"


async def test_what_sync_keeps_for_itself_is_no_business_of_git(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        assert (one.root / ".bridgehead" / ".gitignore").read_text(encoding="utf-8") == "*\n"


async def test_links_that_leave_the_folder_are_followed_in_no_direction(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret", encoding="utf-8")
    game = Game(3, {"home": {**HOME, "linked/new.js": "// planted\n"}})
    async with synced(tmp_path, game=game) as one:
        (one.root / "linked").symlink_to(outside)
        (one.root / "secret.txt").symlink_to(outside / "secret.txt")
        (one.root / "inside.txt").symlink_to(one.root / "notes.txt")
        await one.sync.run_once()
        await one.sync.run_once()

        assert {path.name for path in outside.iterdir()} == {"secret.txt"}
        assert "secret.txt" not in one.play.game.servers["home"]
        assert one.play.game.servers["home"]["inside.txt"] == HOME["notes.txt"]
        assert one.play.game.servers["home"]["linked/new.js"] == "// planted\n"
        assert {"linked", "linked/new.js", "secret.txt"} <= set(one.folder.left_out)


async def test_files_over_the_write_limit_are_left_alone_on_both_sides(tmp_path: Path) -> None:
    game = Game(3, {"home": {**HOME, "there.txt": "x" * 200}})
    async with synced(tmp_path, game=game, rules=Rules(deletes=True)) as one:
        await one.sync.run_once()
        assert "there.txt" in one.files
        one.use(Folder(one.root, ("home",), max_bytes=100))
        one.put("notes.txt", "y" * 101)
        one.put("here.txt", "y" * 101)
        await one.sync.run_once()

        assert one.play.game.servers["home"] == {**HOME, "there.txt": "x" * 200}
        assert len(one.files) == 5
        assert {"there.txt", "here.txt", "notes.txt"} <= set(one.folder.left_out)
