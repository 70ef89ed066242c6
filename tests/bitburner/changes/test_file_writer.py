"""FileWriter: changes are compared, kept and pushed in one place, whichever process asks for them."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from msgspec import Raw

from bridgehead.bitburner.changes import file_writer
from bridgehead.bitburner.changes.edits import Replacement
from bridgehead.bitburner.changes.file_writer import (
    CHANGE,
    CHANGED,
    DIFFERENCES,
    Delete,
    EditText,
    FileWriter,
    Move,
    Restore,
    Write,
    check_match,
    check_size,
    decode_notice,
    mark_unknown,
)
from bridgehead.bitburner.changes.history import History, digest
from bridgehead.bitburner.changes.last_seen import NO_FILE
from bridgehead.bitburner.errors import BackupFailed, Conflict, Disconnected, NotConnected, RemoteFailure
from bridgehead.bitburner.game.link import Link
from bridgehead.bitburner.game.wire import Reply
from bridgehead.bitburner.simulator import Faults
from bridgehead.runtime import durable
from bridgehead.runtime.errors import BridgeError, InvalidArgument
from bridgehead.runtime.timing import SystemClock
from tests.bitburner.game.sharing.test_relay import pair
from tests.bitburner.playing import FILES, PAGE, SCRIPT, Play, bridged, played, settings, versions_of
from tests.bitburner.serving import HOST, environment, serving
from tests.support.game import Game
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE, until


async def test_a_write_that_the_game_refuses_is_no_version(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES)) as play:
        await play.fails("write_file", filename="a.css", content="1")

        assert versions_of(play.session.history, "a.css") == []


async def test_a_file_is_moved_without_its_content_passing_by(play: Play) -> None:
    content = play.game.servers["home"]["hack.js"]
    text, moved = await play.ok("move_file", filename="hack.js", to="old/hack.js")

    assert text.startswith("OK. hack.js is now old/hack.js.")
    assert play.game.servers["home"]["old/hack.js"] == content
    assert "hack.js" not in play.game.servers["home"]
    await play.ok("restore_file", filename="hack.js", version=moved["kept_version"])
    assert play.game.servers["home"]["hack.js"] == content


async def test_a_move_does_not_overwrite_unless_told_to(play: Play) -> None:
    before = dict(play.game.servers["home"])
    text, problem = await play.fails("move_file", filename="hack.js", to="notes.txt")
    assert problem["code"] == "conflict"
    assert "Nothing was changed." in text
    assert play.game.servers["home"] == before
    await play.ok("move_file", filename="hack.js", to="notes.txt", overwrite=True)
    await play.ok("restore_file", filename="notes.txt")

    assert play.game.servers["home"]["notes.txt"] == before["notes.txt"]


async def test_a_move_does_not_overwrite_an_empty_file_either(play: Play) -> None:
    play.game.servers["home"]["empty.txt"] = ""
    before = dict(play.game.servers["home"])
    _, problem = await play.fails("move_file", filename="notes.txt", to="empty.txt")

    assert problem["code"] == "conflict"
    assert play.game.servers["home"] == before


async def test_a_move_of_a_running_script_leaves_one_copy(play: Play) -> None:
    play.game.world.running.add(("home", "hack.js"))
    before = dict(play.game.servers["home"])
    text, _ = await play.fails("move_file", filename="hack.js", to="new.js")
    assert "Nothing was changed" in text
    assert play.game.servers["home"] == before

    await play.fails("move_file", filename="hack.js", to="notes.txt", overwrite=True)
    assert play.game.servers["home"] == before


async def test_a_missing_file_and_a_move_onto_itself_are_refused(play: Play) -> None:
    assert (await play.fails("move_file", filename="no.js", to="new.js"))[1]["code"] == "not_found"
    text, _ = await play.fails("move_file", filename="hack.js", to="./hack.js")
    assert "The two names are the same" in text


async def test_a_write_asks_for_one_file_and_not_for_the_list(play: Play) -> None:
    await play.ok("write_file", filename="hack.js", content="1")
    await play.ok("write_file", filename="brand/new.js", content="1")

    assert play.asked("getFileNames") == []
    assert len(play.asked("getFile")) == 2


class Desk:
    """A writer on a game of its own, and everything that it told."""

    def __init__(self, play: Play, timeout: float = 60.0) -> None:
        self.game = play.game
        self.history = play.session.history
        self.remote = play.session.remote
        session = play.session
        self.differences = session.differences
        self.last_seen = session.last_seen
        self.writer = FileWriter(
            session.connection,
            self.remote,
            self.history,
            session.differences,
            session.relay,
            session.last_seen,
            clock=SystemClock(),
            timeout=timeout,
        )
        self.told: list[tuple[str, bool, bool]] = []
        self.writer.on_change.append(
            lambda change: self.told.append((change.filename, change.digest is None, change.is_listed_anew))
        )

    def kinds(self, filename: str) -> list[tuple[str, str]]:
        """The versions of a file, newest first: why each was kept, and what it was."""
        return [(one.because, one.kind) for one in versions_of(self.history, filename)]


@pytest.fixture
async def desk(play: Play) -> Desk:
    return Desk(play)


async def test_a_write_keeps_both_contents_and_tells_of_it(desk: Desk) -> None:
    first = await desk.writer.apply(Write("home", "new.js", "1"))
    second = await desk.writer.apply(Write("home", "new.js", "2"))

    assert (first.content, first.is_listed_anew, first.kept_version) == ("1", True, None)
    assert (second.content, second.is_listed_anew, second.warning) == ("2", False, "")
    assert second.kept_version == versions_of(desk.history, "new.js")[1].name
    assert desk.told == [("new.js", False, True), ("new.js", False, False)]
    assert desk.kinds("new.js") == [("write_file", "written")] * 2


async def test_what_was_not_written_by_us_is_kept_as_found(desk: Desk) -> None:
    await desk.writer.apply(EditText("home", "notes.txt", [Replacement("two", "2")], 1000))

    assert desk.kinds("notes.txt") == [("edit_file", "written"), ("edit_file", "found")]


async def test_a_write_of_the_same_content_is_no_new_version(desk: Desk) -> None:
    for _ in range(2):
        assert (await desk.writer.apply(Write("home", "new.js", "1"))).kept_version is None

    assert len(desk.kinds("new.js")) == 1


async def test_a_delete_keeps_the_content_and_tells_that_the_file_is_gone(desk: Desk) -> None:
    outcome = await desk.writer.apply(Delete("home", "notes.txt"))

    assert outcome.is_listed_anew
    assert outcome.kept_version == versions_of(desk.history, "notes.txt")[1].name
    assert desk.told == [("notes.txt", True, True)]
    assert desk.kinds("notes.txt") == [("delete_file", "deleted"), ("delete_file", "found")]


async def test_a_delete_of_something_else_changes_nothing(desk: Desk) -> None:
    with pytest.raises(Conflict, match="does not hold what if_match says"):
        await desk.writer.apply(Delete("home", "notes.txt", if_match="something else"))
    assert "notes.txt" in desk.game.servers["home"]

    content = desk.game.servers["home"]["notes.txt"]
    await desk.writer.apply(Delete("home", "notes.txt", if_match=digest(content).upper()))
    assert "notes.txt" not in desk.game.servers["home"]


async def test_a_move_is_a_write_and_a_delete(desk: Desk) -> None:
    content = desk.game.servers["home"]["notes.txt"]
    outcome = await desk.writer.apply(Move("home", "notes.txt", "home", "old.txt"))

    assert (outcome.content, outcome.is_listed_anew, outcome.warning) == (content, True, "")
    assert outcome.kept_version == versions_of(desk.history, "notes.txt")[1].name
    assert desk.told == [("old.txt", False, True), ("notes.txt", True, True)]
    assert desk.kinds("old.txt") == [("move_file", "written")]
    with pytest.raises(Conflict):
        await desk.writer.apply(Move("home", "hack.js", "home", "old.txt"))


async def test_changes_that_name_files_in_opposite_orders_do_not_wait_for_each_other(
    desk: Desk,
) -> None:
    a, b = ("home", "a.txt"), ("home", "b.txt")

    async def change(*places: tuple[str, str]) -> None:
        async with desk.writer.locked(places):
            await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE), desk.writer.locked([a]):
        # Both wait here: the second one must not hold b.txt meanwhile.
        both = asyncio.gather(change(a, b), change(b, a))
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        await both


async def test_two_moves_to_one_name_do_not_meet(desk: Desk) -> None:
    desk.game.faults = Faults(late=1.0, delay=0.02)
    done = await asyncio.gather(
        desk.writer.apply(Move("home", "notes.txt", "home", "new.txt")),
        desk.writer.apply(Move("home", "hack.js", "home", "new.txt")),
        return_exceptions=True,
    )

    assert [isinstance(one, Conflict) for one in done] == [False, True]
    assert "hack.js" in desk.game.servers["home"]


async def test_a_restore_names_the_version_that_it_brought_back(desk: Desk) -> None:
    for content in ("1", "2"):
        await desk.writer.apply(Write("home", "new.js", content))
    first = versions_of(desk.history, "new.js")[1].name
    outcome = await desk.writer.apply(Restore("home", "new.js"))

    assert (outcome.content, outcome.restored) == ("1", first)
    assert desk.kinds("new.js")[0] == ("restore_file", "written")
    assert versions_of(desk.history, "new.js")[0].restored == first


async def test_without_backups_nothing_can_be_restored(tmp_path: Path) -> None:
    async with played(tmp_path, BITBURNER_BACKUP_DIR="off") as play:
        desk = Desk(play)
        assert (await desk.writer.apply(Write("home", "notes.txt", "1"))).kept_version is None
        with pytest.raises(InvalidArgument, match="Backups are off"):
            await desk.writer.apply(Restore("home", "notes.txt"))


async def test_without_backups_a_change_is_compared_all_the_same(tmp_path: Path) -> None:
    async with played(tmp_path, BITBURNER_BACKUP_DIR="off") as play:
        desk = Desk(play)
        for change in (
            Write("home", "notes.txt", "1", if_match="something else"),
            Delete("home", "notes.txt", if_match="something else"),
        ):
            with pytest.raises(Conflict):
                await desk.writer.apply(change)
        edited = await desk.writer.apply(EditText("home", "notes.txt", [Replacement("two", "2")], 1000))
        moved = await desk.writer.apply(Move("home", "notes.txt", "home", "new.txt"))
        play.game.requests.clear()
        deleted = await desk.writer.apply(Delete("home", "new.txt"))

        assert (edited.content, edited.kept_version) == ("one\n2\nthree", None)
        assert (moved.kept_version, deleted.kept_version, deleted.warning) == (None, None, "")
        # There is nothing to compare it with. Other files may be read beside this.
        assert {"filename": "new.txt", "server": "home"} not in play.asked("getFile")


@pytest.mark.parametrize(
    "failure", [Disconnected("getFile"), RemoteFailure("getFile", "Server hostname invalid")]
)
async def test_a_file_that_cannot_be_read_is_not_changed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, failure: BridgeError
) -> None:
    async def fail(_filename: str, _server: str) -> str:
        raise failure

    monkeypatch.setattr(desk.remote, "read", fail)
    with pytest.raises(type(failure), match="Nothing was changed"):
        await desk.writer.apply(Write("home", "notes.txt", "1"))

    assert desk.game.servers["home"]["notes.txt"] != "1"


async def test_what_the_game_refuses_to_take_is_not_kept(desk: Desk) -> None:
    desk.game.world.running.add(("home", "hack.js"))
    with pytest.raises(BridgeError, match="Nothing was changed"):
        await desk.writer.apply(Delete("home", "hack.js"))

    assert desk.kinds("hack.js") == [("delete_file", "found")]
    assert desk.told == []


async def test_new_content_that_cannot_be_kept_is_written_with_a_warning(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise BackupFailed("No room.", next_step="Make some.") from OSError("disk full")

    monkeypatch.setattr(desk.history, "record", full)
    outcome = await desk.writer.apply(Write("home", "new.js", "1"))

    assert outcome.warning == "The new content could not be kept on this machine: disk full."
    assert desk.game.servers["home"]["new.js"] == "1"


async def test_a_move_whose_old_content_cannot_be_kept_leaves_both_and_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise BackupFailed("No room, so it was left as it is.", next_step="Make some.") from OSError("full")

    monkeypatch.setattr(desk.history, "record", full)
    with pytest.raises(BackupFailed, match=r"new\.js was written, and hack\.js is still there too"):
        await desk.writer.apply(Move("home", "hack.js", "home", "new.js"))

    assert desk.game.servers["home"]["new.js"] == desk.game.servers["home"]["hack.js"] == SCRIPT


# --- what an agent had not seen, and what the game lost ---------------------------------------------------


@pytest.mark.parametrize("agent", ["", "p/a"])
async def test_what_an_agent_had_not_seen_is_replaced_unless_it_refuses_that(desk: Desk, agent: str) -> None:
    await desk.writer.apply(Write("home", "new.js", "1"), "p/a")
    desk.game.servers["home"]["new.js"] = "the player's"
    signed = Write("home", "new.js", "2", agent="p/a", seen=digest("1"))
    done = await desk.writer.apply(Write("home", "new.js", "2") if agent else signed, agent)

    assert done.overwritten is not None
    assert (done.overwritten.author, done.overwritten.version) == (None, done.kept_version)
    assert desk.game.servers["home"]["new.js"] == "2"


async def test_an_agent_that_never_read_a_file_is_told_of_the_content_of_another(desk: Desk) -> None:
    await desk.writer.apply(Write("home", "new.js", "1"), "p/a")
    forgotten = await desk.writer.apply(Write("home", "new.js", "2", agent="p/a"))
    others = await desk.writer.apply(Write("home", "new.js", "3"), "p/b")

    assert forgotten.overwritten is None  # it is its own
    assert others.overwritten is not None
    assert others.overwritten.author is not None
    assert others.overwritten.author.agent == "p/a"


async def test_an_agent_has_seen_what_it_wrote_and_that_a_file_is_gone(desk: Desk) -> None:
    seen = desk.last_seen.find_seen
    await desk.writer.apply(Write("home", "new.js", "1"), "p/a")
    assert seen("p/a", ("home", "new.js")) == digest("1")
    await desk.writer.apply(Move("home", "new.js", "home", "moved.js"), "p/a")
    await desk.writer.apply(Delete("home", "notes.txt"), "p/a")
    assert seen("p/a", ("home", "new.js")) == seen("p/a", ("home", "notes.txt")) == NO_FILE

    await desk.writer.apply(Write("home", "hack.js", "1"))
    assert seen("", ("home", "hack.js")) is None


async def test_a_delete_after_an_older_save_names_what_the_game_lost(desk: Desk) -> None:
    for content in ("1", "2"):
        await desk.writer.apply(Write("home", "new.js", content), "p/a")
    lost = versions_of(desk.history, "new.js")[0].name
    desk.game.servers["home"]["new.js"] = "1"
    done = await desk.writer.apply(Delete("home", "new.js"), "p/a")

    assert done.overwritten is not None
    assert (done.overwritten.is_older, done.overwritten.version) == (True, lost)
    assert done.kept_version != lost


async def test_a_delete_of_what_the_player_wrote_names_where_that_is_kept(desk: Desk) -> None:
    await desk.writer.apply(Write("home", "new.js", "1"), "p/a")
    desk.game.servers["home"]["new.js"] = "the player's"
    done = await desk.writer.apply(Delete("home", "new.js"), "p/a")

    assert done.overwritten is not None
    assert done.overwritten.version == done.kept_version == versions_of(desk.history, "new.js")[1].name


async def test_a_restore_brings_back_what_the_game_lost(desk: Desk) -> None:
    for content in ("1", "2", "3"):
        await desk.writer.apply(Write("home", "new.js", content))
    newest = versions_of(desk.history, "new.js")[0].name
    desk.game.servers["home"]["new.js"] = "2"
    assert await desk.differences.check("home", "new.js", "2") is not None
    await desk.differences.acknowledge(desk.remote)
    desk.game.servers["home"]["new.js"] = "the player's"
    restored = await desk.writer.apply(Restore("home", "new.js"))

    assert (restored.content, restored.restored) == ("3", newest)


async def test_a_restore_of_the_current_version_by_its_name_writes_that(desk: Desk) -> None:
    for content in ("1", "2"):
        await desk.writer.apply(Write("home", "new.js", content))
    newest = versions_of(desk.history, "new.js")[0].name
    restored = await desk.writer.apply(Restore("home", "new.js", newest))

    assert (restored.content, restored.restored) == ("2", newest)


async def test_a_delete_tells_which_versions_were_dropped_for_it(tmp_path: Path) -> None:
    async with played(tmp_path, BITBURNER_BACKUP_MAX_FILES="2") as play:
        desk = Desk(play)
        for filename in ("a.js", "b.js"):
            await desk.writer.apply(Write("home", filename, "1"))
        done = await desk.writer.apply(Delete("home", "notes.txt"))

    assert [one.filename for one in done.dropped] == ["a.js"]


async def test_without_a_game_nothing_can_be_changed(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        with pytest.raises(NotConnected):
            await Desk(play).writer.apply(Write("home", "new.js", "1"))


def test_who_does_not_know_whether_a_change_was_made_is_told_to_look() -> None:
    error = mark_unknown(Disconnected("pushFile"))

    assert "It is not known whether the change was made." in error.message
    assert error.next_step.startswith("Read the file before you try again")


# --- what survives the end of the process, and what a power cut -------------------------------------------


@pytest.fixture
def steps(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is flushed and pushed, in order."""
    found: list[str] = []
    flush, push = durable.flush, desk.remote.push

    def flushed(descriptor: int) -> None:
        found.append("flush")
        flush(descriptor)

    async def pushed(filename: str, content: str, server: str) -> None:
        found.append("push")
        await push(filename, content, server)

    monkeypatch.setattr(durable, "flush", flushed)
    monkeypatch.setattr(desk.remote, "push", pushed)
    return found


async def test_what_a_write_replaces_is_flushed_before_the_game_is_asked(
    desk: Desk, steps: list[str]
) -> None:
    await desk.writer.apply(Write("home", "hack.js", "1"))

    assert steps[: steps.index("push")] == ["flush", "flush"]  # the file and its folder


async def test_a_new_content_is_in_its_file_at_the_answer(
    desk: Desk, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_writer, "_FLUSH_SECONDS", 3600.0)
    await desk.writer.apply(Write("home", "new.js", "1"))

    (version,) = versions_of(desk.history, "new.js")
    assert version.content == "1"
    for _ in range(50):  # a flush that did not wait would come by now
        await asyncio.sleep(0.001)
    assert steps == ["push"]


async def test_a_new_content_is_flushed_after_the_answer(desk: Desk, steps: list[str]) -> None:
    await desk.writer.apply(Write("home", "new.js", "1"))
    await until(lambda: not desk.history.unflushed)

    assert sorted(steps) == ["flush", "flush", "push"]


async def test_a_content_that_is_replaced_at_once_is_flushed_first(
    desk: Desk, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_writer, "_FLUSH_SECONDS", 3600.0)
    await desk.writer.apply(Write("home", "new.js", "1"))
    second = await desk.writer.apply(Write("home", "new.js", "2"))

    assert steps == ["push", "flush", "flush", "push"]
    assert second.kept_version is not None
    assert second.kept_version not in desk.history.unflushed


async def test_closing_ends_the_flushing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.writer.close()  # there is none yet
    monkeypatch.setattr(file_writer, "_FLUSH_SECONDS", 3600.0)
    await desk.writer.apply(Write("home", "new.js", "1"))
    flushing = desk.writer._flushing  # noqa: SLF001
    assert flushing is not None
    assert not flushing.done()
    async with asyncio.timeout(PATIENCE):
        await desk.writer.close()

    assert flushing.cancelled()


async def test_a_content_that_an_earlier_process_kept_is_not_kept_twice(tmp_path: Path) -> None:
    game, kept = Game(3, FILES), list[str | None]()
    for content in ("1", "2"):
        async with played(tmp_path, game=game) as play:
            await Desk(play).writer.apply(Write("home", "new.js", content))
            kept = [one.content for one in versions_of(play.session.history, "new.js")]

    assert kept == ["2", "1"]


@pytest.mark.parametrize("damage", ["deleted", "cut"])
async def test_a_version_that_was_lost_meanwhile_is_kept_once_more(desk: Desk, damage: str) -> None:
    await desk.writer.apply(Write("home", "new.js", "1"))
    (file,) = desk.history.folder.glob("*.json")
    if damage == "deleted":
        file.unlink()
    else:
        file.write_text("{", encoding="utf-8")
    await desk.writer.apply(Write("home", "new.js", "2"))

    assert [one.content for one in versions_of(desk.history, "new.js")] == ["2", "1"]


async def test_a_killed_process_has_kept_everything_that_it_answered(tmp_path: Path) -> None:
    state, port = tmp_path / "state", free_port()
    with serving(tmp_path / "stderr", environment(state, port)) as bridge:
        async with Game(3, FILES) as game:
            await bridge.status()  # the port is open
            assert await game.dial(f"ws://{HOST}:{port}", PAGE)
            for content in ("1", "2", "3"):
                assert await bridge.text("write_file", filename="hack.js", content=content) == "OK"
            bridge.peer.process.kill()
            await asyncio.to_thread(bridge.peer.exit_code)

    history = History(settings(state), SystemClock())
    assert [one.content for one in versions_of(history, "hack.js")] == ["3", "2", "1", SCRIPT]
    history.close()


def test_a_content_matches_by_its_text_or_by_its_digest() -> None:
    check_match("home", "a.js", None, "")
    check_match("home", "a.js", "1", "1")
    check_match("home", "a.js", None, digest(""))
    with pytest.raises(Conflict):
        check_match("home", "a.js", "1", "")


def test_a_content_may_be_as_large_as_the_limit() -> None:
    check_size("é", 2)
    with pytest.raises(InvalidArgument, match="has 2 bytes, and at most 1"):
        check_size("é", 1)


def test_processes_of_two_versions_understand_each_other() -> None:
    """They may share a game, so what they call their messages stays."""
    assert (CHANGE, DIFFERENCES, CHANGED) == (
        "bridgehead/change",
        "bridgehead/differences",
        "bridgehead/changed",
    )


@pytest.mark.parametrize(("ours", "owners"), [(1.0, 30.0), (60.0, 240.0)])
async def test_an_owner_has_longer_than_one_exchange_with_the_game(
    play: Play, ours: float, owners: float
) -> None:
    given: list[float] = []

    class Owner:
        async def call(self, _method: str, _params: bytes, seconds: float) -> Raw:
            given.append(seconds)
            return Raw(b"[]")

    writer = Desk(play, ours).writer
    assert await writer.ask_owner(cast("Link", Owner()), DIFFERENCES, {}, list[str]) == []

    assert given == [owners]


def test_a_notice_of_another_kind_or_form_is_none() -> None:
    notice = Reply(method="bridgehead/told", params=Raw(b'"hello"'))

    assert decode_notice(notice, "bridgehead/told", str) == "hello"
    assert decode_notice(notice, CHANGED, str) is None
    assert decode_notice(notice, "bridgehead/told", int) is None
    assert decode_notice(Reply(method="bridgehead/told"), "bridgehead/told", str) is None


async def test_edits_of_an_owner_and_a_guest_at_once_do_not_lose_each_other(tmp_path: Path) -> None:
    game = Game(3, {"home": {"n.txt": " ".join(f"<{number}>" for number in range(40))}})
    async with pair(tmp_path, game) as (owner, guest):
        sides = (owner, guest)
        await asyncio.gather(
            *(
                sides[number % 2].ok(
                    "edit_file", filename="n.txt", old_text=f"<{number}>", new_text=str(number)
                )
                for number in range(40)
            )
        )

    assert game.servers["home"]["n.txt"] == " ".join(map(str, range(40)))


async def test_an_if_match_of_two_processes_lets_one_of_them_through(tmp_path: Path) -> None:
    game = Game(3, {"home": {"n.txt": "0"}})
    successes = 0

    async def count_up(side: Play) -> None:
        nonlocal successes
        for _ in range(15):
            seen = game.servers["home"]["n.txt"]
            arguments = {"filename": "n.txt", "content": str(int(seen) + 1), "if_match": seen}
            result = await side.client.call("write_file", arguments)
            successes += not result.get("isError")

    async with pair(tmp_path, game) as (owner, guest):
        await asyncio.gather(count_up(owner), count_up(guest))

    assert int(game.servers["home"]["n.txt"]) == successes


async def test_every_content_of_two_processes_is_current_or_kept(tmp_path: Path) -> None:
    game = Game(3, FILES)
    async with pair(tmp_path, game) as (owner, guest):
        contents = [f"{number}" * 30 for number in range(30)]
        await asyncio.gather(
            *(
                (owner, guest)[number % 2].ok("write_file", filename="n.txt", content=content)
                for number, content in enumerate(contents)
            )
        )
        kept = {one.content for one in versions_of(owner.session.history, "n.txt")}

    assert kept >= set(contents)


async def test_a_guests_failures_are_those_of_the_owner(tmp_path: Path) -> None:
    async with pair(tmp_path, Game(3, FILES)) as (owner, guest):
        for tool, arguments in (
            ("write_file", {"filename": "hack.js", "content": "1", "if_match": "other"}),
            ("edit_file", {"filename": "notes.txt", "old_text": "four", "new_text": "4"}),
            ("edit_file", {"filename": "missing.txt", "old_text": "four", "new_text": "4"}),
            ("delete_file", {"filename": "missing.js"}),
            ("restore_file", {"filename": "hack.js"}),
            ("write_file", {"filename": "a.js", "content": "1", "server": "nope"}),
        ):
            assert await guest.fails(tool, **arguments) == await owner.fails(tool, **arguments)


async def test_a_guest_whose_answer_is_lost_hears_that_the_change_may_have_been_made(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0, only=frozenset({"pushFile"})))
    async with pair(tmp_path, game) as (owner, guest):
        call = asyncio.ensure_future(guest.fails("write_file", filename="a.txt", content="1"))
        while not owner.asked("pushFile"):
            await asyncio.sleep(0.01)
        for socket in tuple(owner.session.relay.guests):  # the owner goes in the middle
            await socket._socket.close()  # noqa: SLF001
        text, problem = await call

    assert problem["code"] == "disconnected"
    assert "not known whether" in text
