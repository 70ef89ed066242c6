"""A game and a folder that are kept in step, in one process."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from bridgehead.bitburner.sync.engine import Event, Sync
from bridgehead.bitburner.sync.folder import Folder
from bridgehead.bitburner.sync.planning import Action, Rules
from tests.bitburner.playing import Play, played
from tests.support.game import Game

HOME = {"hack.js": "// hack\n", "lib/tools.js": "// tools\n", "notes.txt": "notes"}


class Synced:
    """A game, a folder, and what was told."""

    def __init__(
        self, play: Play, root: Path, rules: Rules, servers: tuple[str, ...], copies: tuple[str, ...]
    ) -> None:
        self.play = play
        self.root = root
        self.folder = Folder(root, servers)
        self.events: list[Event] = []
        self.asked: list[int] = []
        self.agrees = True
        self._rules = rules
        self._copies = copies
        self.use(self.folder)

    def use(self, folder: Folder) -> None:
        self.folder = folder
        self.sync = Sync(
            self.play.session, folder, self._rules, self.events.append, ask=self.ask, copies=self._copies
        )

    async def ask(self, deletes: list[Action], _: int) -> bool:
        self.asked.append(len(deletes))
        return self.agrees

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
    copies: tuple[str, ...] = (),
) -> AsyncIterator[Synced]:
    root = tmp_path / "scripts"
    root.mkdir(exist_ok=True)
    async with played(tmp_path / "state", game=game or Game(3, {"home": HOME})) as play:
        one = Synced(play, root, rules or Rules(), servers, copies)
        with one.folder.locked():
            yield one
