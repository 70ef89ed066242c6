"""A folder and the game in step: in both directions, with agents at work, and when things go wrong."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridgehead.bitburner.simulator import Game
from bridgehead.bitburner.sync.engine import Event, Sync
from bridgehead.bitburner.sync.folder import Folder
from bridgehead.bitburner.sync.planning import Rules
from bridgehead.runtime.errors import InvalidArgument
from tests.bitburner.playing import PAGE, Play, played
from tests.support.posix import fcntl
from tests.support.waiting import until

HOME = {"hack.js": "// hack\n", "lib/tools.js": "// tools\n", "notes.txt": "notes"}


class Synced:
    """A game, a folder, and what was told."""

    def __init__(self, play: Play, root: Path, rules: Rules, servers: tuple[str, ...]) -> None:
        self.play = play
        self.root = root
        self.folder = Folder(root, servers)
        self.events: list[Event] = []
        self._rules = rules
        self.use(self.folder)

    def use(self, folder: Folder) -> None:
        self.folder = folder
        self.sync = Sync(self.play.session, folder, self._rules, self.events.append)

    @property
    def files(self) -> dict[str, str]:
        found = (path for path in self.root.rglob("*") if path.is_file())
        names = {path.relative_to(self.root).as_posix(): path for path in found}
        return {name: path.read_bytes().decode() for name, path in names.items() if ".bridgehead" not in name}

    def put(self, name: str, content: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="")

    def told(self, kind: str) -> list[str]:
        return [event.place[1] for event in self.events if event.kind == kind]


@contextlib.asynccontextmanager
async def synced(
    tmp_path: Path,
    *,
    game: Game | None = None,
    rules: Rules | None = None,
    servers: tuple[str, ...] = ("home",),
) -> AsyncIterator[Synced]:
    root = tmp_path / "scripts"
    root.mkdir(exist_ok=True)
    async with played(tmp_path / "state", game=game or Game(3, {"home": HOME})) as play:
        one = Synced(play, root, rules or Rules(), servers)
        with one.folder.locked():
            yield one


async def test_both_sides_get_what_the_other_has(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        one.put("mine.js", "// mine\n")
        await one.sync.run_once()

        assert one.files == {**HOME, "mine.js": "// mine\n"}
        assert one.play.game.servers["home"]["mine.js"] == "// mine\n"
        one.events.clear()
        await one.sync.run_once()
        assert one.events == []


async def test_line_ends_of_both_kinds_stay_as_they_are(tmp_path: Path) -> None:
    async with synced(tmp_path, game=Game(3, {"home": {"theirs.js": "a\r\nb\n"}})) as one:
        one.put("mine.js", "c\r\nd\r")
        await one.sync.run_once()

        assert one.files == {"theirs.js": "a\r\nb\n", "mine.js": "c\r\nd\r"}
        assert one.play.game.servers["home"] == one.files


async def test_the_side_that_changed_wins_and_the_other_content_can_be_restored(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// better\n")
        one.play.game.servers["home"]["notes.txt"] = "other notes"
        await one.sync.run_once()

        assert one.play.game.servers["home"]["hack.js"] == "// better\n"
        assert one.files["notes.txt"] == "other notes"
        await one.play.ok("restore_file", filename="hack.js")
        assert one.play.game.servers["home"]["hack.js"] == "// hack\n"


async def test_a_conflict_keeps_both_and_is_settled_by_deleting_the_copy(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// here\n")
        one.play.game.servers["home"]["hack.js"] = "// there\n"
        await one.sync.run_once()
        await one.sync.run_once()

        assert one.files["hack.js"] == "// here\n"
        assert one.files["hack.from-game.js"] == "// there\n"
        assert one.told("conflict") == ["hack.js"]
        assert "hack.from-game.js" not in one.play.game.servers["home"]
        (one.root / "hack.from-game.js").unlink()
        await one.sync.run_once()
        assert one.play.game.servers["home"]["hack.js"] == "// here\n"
        kept = [version.content for version in one.play.session.history.list_versions("home", "hack.js")]
        assert "// there\n" in kept


async def test_a_conflict_is_settled_too_by_taking_the_games_content(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// here\n")
        one.play.game.servers["home"]["hack.js"] = "// there\n"
        await one.sync.run_once()
        one.put("hack.js", "// there\n")
        await one.sync.run_once()

        assert "hack.from-game.js" not in one.files
        assert one.play.game.servers["home"]["hack.js"] == "// there\n"


async def test_a_delete_is_held_back_unless_asked_for(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        (one.root / "hack.js").unlink()
        del one.play.game.servers["home"]["notes.txt"]
        await one.sync.run_once()

        assert sorted(one.told("held")) == ["hack.js", "notes.txt"]
        assert "hack.js" in one.play.game.servers["home"]
        assert "notes.txt" in one.files
    async with synced(tmp_path, game=one.play.game, rules=Rules(deletes=True)) as one:
        await one.sync.run_once()
        assert "hack.js" not in one.play.game.servers["home"]
        assert "notes.txt" not in one.files
        await one.play.ok("restore_file", filename="hack.js")
        await one.play.ok("restore_file", filename="notes.txt")
        assert one.play.game.servers["home"]["notes.txt"] == "notes"


async def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        one.put("mine.js", "1")
        plan = await one.sync.plan()

        assert {(action.kind, action.place[1]) for action in plan} == {
            ("push", "mine.js"),
            *(("pull", name) for name in HOME),
        }
        assert one.files == {"mine.js": "1"}
        assert one.play.game.servers["home"] == HOME


@pytest.mark.parametrize("mode", ["pull", "push"])
async def test_one_direction_changes_one_side_only(tmp_path: Path, mode: str) -> None:
    async with synced(tmp_path, rules=Rules(mode)) as one:  # type: ignore[arg-type]
        one.put("mine.js", "1")
        await one.sync.run_once()

        assert (one.files == {**HOME, "mine.js": "1"}) == (mode == "pull")
        assert (one.play.game.servers["home"] == {**HOME, "mine.js": "1"}) == (mode == "push")


async def test_several_servers_lie_in_a_subfolder_each(tmp_path: Path) -> None:
    game = Game(3, {"home": HOME, "n00dles": {"a.js": "1"}})
    async with synced(tmp_path, game=game, servers=("home", "n00dles")) as one:
        one.put("n00dles/b.js", "2")
        one.put("elsewhere/c.js", "3")
        await one.sync.run_once()

        assert one.files["n00dles/a.js"] == "1"
        assert one.files["home/hack.js"] == "// hack\n"
        assert game.servers["n00dles"] == {"a.js": "1", "b.js": "2"}


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
        before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(one.root)}
        await one.sync.run_once()
        after = {path for path in tmp_path.rglob("*") if not path.is_relative_to(one.root)}

        assert one.files == HOME
        assert after == before
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


async def test_an_edit_reaches_the_game_while_it_runs_and_an_agents_write_the_folder(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        running = asyncio.create_task(one.sync.run())
        await asyncio.sleep(0.3)  # the watcher has no sign of its own
        one.put("hack.js", "// edited\n")
        await until(lambda: one.play.game.servers["home"]["hack.js"] == "// edited\n")
        await one.play.ok("write_file", filename="agent.js", content="// agent\n")
        await until(lambda: one.files.get("agent.js") == "// agent\n")
        one.play.game.servers["home"]["notes.txt"] = "by the player"
        await until(lambda: one.files["notes.txt"] == "by the player")
        running.cancel()
        await asyncio.wait({running})


async def test_a_reload_with_an_older_save_gets_everything_again(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// newer\n")
        one.put("new.js", "// new\n")
        await one.sync.run_once()
        game = one.play.game
        await game.hang_up()
        await until(lambda: one.play.session.board.link is None)
        game.servers["home"].clear()
        game.servers["home"].update(HOME)
        assert await game.dial(one.play.url, PAGE)
        await until(lambda: len(one.play.session.changes.differences.found) == 2)
        await one.sync.run_once()

        assert one.files["hack.js"] == game.servers["home"]["hack.js"] == "// newer\n"
        assert game.servers["home"]["new.js"] == "// new\n"


async def test_a_second_copy_of_itself_is_refused(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        with (
            pytest.raises(InvalidArgument, match="Another sync is running"),
            Folder(one.root, ("home",)).locked(),
        ):
            pass


async def test_a_full_disk_is_told_and_made_up_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with synced(tmp_path) as one:
        with monkeypatch.context() as full:

            def refuse(*_: object, **__: object) -> None:
                raise OSError(28, "No space left on device")

            full.setattr(one.folder, "_replace", refuse)
            await one.sync.run_once()
            assert sorted(one.told("failed")) == sorted(HOME)
        await one.sync.run_once()

        assert one.files == HOME


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


async def test_a_write_of_an_agent_in_between_is_never_overwritten(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// here\n")
        actions = await one.sync.plan()
        await one.play.ok("write_file", filename="hack.js", content="// agent\n")
        await one.sync._carry_out(actions)  # noqa: SLF001 - the write comes between the look and the push

        assert one.play.game.servers["home"]["hack.js"] == "// agent\n"
        await one.sync.run_once()
        assert one.files["hack.from-game.js"] == "// agent\n"


async def test_two_hundred_files_go_each_way_in_a_moment(tmp_path: Path) -> None:
    content = "// line of a script\n" * 150
    there = {f"there/{number}.js": content + str(number) for number in range(200)}
    async with synced(tmp_path, game=Game(3, {"home": there})) as one:
        for number in range(200):
            one.put(f"here/{number}.js", content + str(number))
        began = time.perf_counter()
        await one.sync.run_once()
        seconds = time.perf_counter() - began

        assert len(one.files) == len(one.play.game.servers["home"]) == 400
        assert seconds < 30  # a busy machine; the figure is the benchmark's


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
