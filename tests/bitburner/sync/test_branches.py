"""Sync beside git: whatever is switched, and whenever sync dies, the work tree is what git left."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.bitburner.simulator import Faults
from bridgehead.bitburner.sync.engine import Send, Sync
from bridgehead.bitburner.sync.planning import Rules
from tests.bitburner.playing import PAGE
from tests.bitburner.sync.syncing import Synced, synced
from tests.support.game import Game
from tests.support.waiting import until

BRANCHES = ("main", "feature")


def git(root: Path, *arguments: str) -> str:
    """Run git; one that refuses to go on fails the test."""
    own = ("-c", "user.name=player", "-c", "user.email=player@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *own, *arguments], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit_branches(one: Synced, files: int, changed: int, new: int) -> None:
    """Make two branches: one changes the first files of the other, adds some, and lacks the last."""
    git(one.root, "init", "--quiet", "--initial-branch=main")
    one.put(".gitignore", ".bridgehead/\n")
    for number in range(files):
        one.put(f"d{number % 3}/{number}.js", f"// main {number}\n")
    git(one.root, "add", "--all")
    git(one.root, "commit", "--quiet", "--message=main")
    git(one.root, "switch", "--quiet", "--create=feature")
    for number in range(changed):
        one.put(f"d{number % 3}/{number}.js", f"// feature {number}\n")
    for number in range(new):
        one.put(f"new/{number}.js", f"// new {number}\n")
    (one.root / f"d{(files - 1) % 3}/{files - 1}.js").unlink()
    git(one.root, "add", "--all")
    git(one.root, "commit", "--quiet", "--message=feature")
    git(one.root, "switch", "--quiet", "main")


def tracked(one: Synced) -> dict[str, str]:
    """What git has put into the folder."""
    names = git(one.root, "ls-files").splitlines()
    return {name: (one.root / name).read_text() for name in names if name != ".gitignore"}


def holds_branch(one: Synced) -> Callable[[], bool]:
    """Return whether the game holds every file of the branch that is checked out."""
    wanted = tracked(one)
    return lambda: wanted.items() <= one.play.game.servers["home"].items()


async def running(sync: Sync, work: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.create_task(sync.run())
    await asyncio.sleep(0.3)  # the watcher has no sign of its own
    await work()
    task.cancel()
    await asyncio.wait({task})


async def test_fast_branch_switches_leave_the_work_tree_to_git(tmp_path: Path) -> None:
    async with synced(tmp_path, game=Game(3, {"home": {}})) as one:
        commit_branches(one, files=60, changed=30, new=5)
        await one.sync.run_once()

        async def switch() -> None:
            for branch in (*BRANCHES[::-1] * 6, "feature"):
                git(one.root, "switch", "--quiet", branch)
                await asyncio.sleep(0.07)  # less than a comparison takes
                assert git(one.root, "status", "--porcelain") == ""
            await until(holds_branch(one))

        await running(one.sync, switch)
        assert git(one.root, "status", "--porcelain") == ""


async def test_switch_is_sent_together_not_one_file_after_the_other(tmp_path: Path) -> None:
    async with synced(tmp_path, game=Game(3, {"home": {}})) as one:
        commit_branches(one, files=110, changed=100, new=5)
        await one.sync.run_once()
        # One after the other, 105 files take 210 replies, more than 10 seconds.
        one.play.game.faults = Faults(late=1, delay=0.05, only=frozenset({"pushFile", "getFile"}))
        took: list[float] = []

        async def switch() -> None:
            clock = asyncio.get_running_loop().time
            git(one.root, "switch", "--quiet", "feature")
            began = clock()
            await until(holds_branch(one))
            took.append(clock() - began)

        await running(one.sync, switch)
        assert took[0] < 8


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rounds=st.lists(st.sampled_from(["sync", "kill", "lose", "restart"]), min_size=1, max_size=5),
    seed=st.integers(0, 9),
)
async def test_no_order_of_switches_and_ends_changes_the_work_tree(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[str], seed: int
) -> None:
    draw = Random(seed)  # noqa: S311 - of a test
    tmp_path = tmp_path_factory.mktemp("round")
    async with synced(tmp_path, game=Game(3, {"home": {}}), rules=Rules(deletes=bool(seed % 2))) as one:
        commit_branches(one, files=12, changed=6, new=2)
        await one.sync.run_once()
        for number, ending in enumerate([*rounds, "sync"]):
            git(one.root, "switch", "--quiet", BRANCHES[(number + 1) % 2])
            if ending == "sync":
                await one.sync.run_once()
            elif ending == "restart":
                one.use(one.folder)
            else:
                await interrupt(one, draw, is_killed=ending == "kill")
            assert git(one.root, "status", "--porcelain") == "", ending
        assert tracked(one).items() <= one.play.game.servers["home"].items()


async def interrupt(one: Synced, draw: Random, *, is_killed: bool) -> None:
    """Cut a pass short: the process dies after some requests, or the game goes after some."""
    left = draw.randrange(8)
    arrived = asyncio.Semaphore(0)
    before_death = draw.randint(0, left)
    dead = asyncio.Event()
    deliver, store = one.sync._deliver, one.sync._store  # noqa: SLF001 - where a process can die

    async def deliver_some(send: Send) -> None:
        nonlocal left
        left -= 1
        if left < 0 and is_killed:
            if left == -1:
                for _ in range(before_death):
                    await arrived.acquire()
                dead.set()
            await asyncio.Event().wait()
        elif left < 0:
            one.play.game.faults = Faults(drop=1, times=1)
        try:
            await deliver(send)
        finally:
            arrived.release()

    async def store_until_dead() -> None:
        if not dead.is_set():
            await store()

    one.sync._deliver = deliver_some  # type: ignore[method-assign]  # noqa: SLF001
    one.sync._store = store_until_dead  # type: ignore[method-assign]  # noqa: SLF001
    running = asyncio.create_task(one.sync.run_once())
    dying = asyncio.create_task(dead.wait())
    await asyncio.wait({running, dying}, return_when=asyncio.FIRST_COMPLETED)
    for task in (running, dying):
        task.cancel()
    await asyncio.gather(running, dying, return_exceptions=True)
    await until_connected(one)
    one.use(one.folder)


async def until_connected(one: Synced) -> None:
    game = one.play.game
    game.faults = Faults()
    if not game.is_connected:
        await until(lambda: one.play.session.connection.link is None)
        assert await game.dial(one.play.url, PAGE)
        await until(lambda: one.play.session.connection.link is not None)


async def test_file_that_changed_after_the_scan_is_not_written(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.play.game.servers["home"]["hack.js"] = "// there\n"
        one.play.game.servers["home"]["new.js"] = "// new there\n"
        actions = await one.sync.plan()
        one.put("hack.js", "// meanwhile\n")
        one.put("new.js", "// new meanwhile\n")
        await one.sync.carry_out(actions)
        assert one.files["hack.js"] == "// meanwhile\n"
        assert one.files["new.js"] == "// new meanwhile\n"

        await one.sync.run_once()
        assert one.files["hack.js"] == "// meanwhile\n"
        assert one.files["hack.from-game.js"] == "// there\n"
        assert one.play.game.servers["home"]["hack.js"] == "// there\n"


async def test_edited_copy_of_a_conflict_is_not_written_again(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// here\n")
        one.play.game.servers["home"]["hack.js"] = "// there\n"
        await one.sync.run_once()
        one.put("hack.from-game.js", "// half merged\n")
        one.use(one.folder)
        await one.sync.run_once()

        assert one.files["hack.from-game.js"] == "// half merged\n"
