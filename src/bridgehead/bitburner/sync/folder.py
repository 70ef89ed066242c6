"""Folder: the files of a local folder that the game can hold.

Reads a file only while it does not change, replaces files atomically, and stores the last common content of
both sides in `.bridgehead`, under a lock that one process holds.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from bridgehead.runtime import durable
from bridgehead.runtime.errors import BridgeError, InvalidArgument, StorageError
from bridgehead.runtime.lines import split_lines

from ..changes.history import digest
from ..game import paths
from .ignoring import DEFAULTS, IgnoreRules
from .planning import Digests, Place

OWN = ".bridgehead"
IGNORE = ".bridgeheadignore"
DEFINITIONS = "NetscriptDefinitions.d.ts"
CONFIG = "tsconfig.json"
FROM_GAME = ".from-game"
_ALWAYS_IGNORED = IgnoreRules(
    (f"{OWN}/", ".git/", f"/{DEFINITIONS}", f"/{CONFIG}", IGNORE, f"*{FROM_GAME}.*")
)
_MAX_IGNORE_BYTES = 64_000
_READ_ATTEMPTS = 5
_PATH_BYTES = 1024
"""Buffer size that F_GETPATH of macOS expects."""
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\..*)?", re.IGNORECASE)
"""Names of devices on Windows, with any extension and in any folder."""
_UNWRITABLE = re.compile(r'[<>:"|?*\\\x00-\x1f]')
_TSCONFIG = {
    "compilerOptions": {
        "target": "ES2022",
        "module": "ESNext",
        "moduleResolution": "bundler",
        "lib": ["ES2022", "DOM"],
        "jsx": "react",
        "allowJs": True,
        "checkJs": True,
        "noEmit": True,
        "skipLibCheck": True,
        "baseUrl": ".",
        "paths": {"@ns": [f"./{DEFINITIONS}"], "/*": ["./*"]},
    },
    "include": ["**/*"],
}


_Rows = list[tuple[str, str, str]]
"""Server, path and digest."""


class State(Struct, omit_defaults=True):
    """What a sync has to know of the ones before it."""

    agreed: _Rows = []
    """The last content that both sides had."""
    game: str = ""
    """Whose content that was: see `GameConnection.past`."""
    sent: _Rows = []
    """What was sent since then without an answer; an empty digest is a delete."""


class Folder:
    """One folder. With several servers, each has a subfolder of its name."""

    def __init__(
        self,
        root: Path,
        servers: tuple[str, ...],
        *,
        max_bytes: int = 1_000_000,
        is_windows: bool = sys.platform == "win32",
        ignores_case: bool | None = None,
    ) -> None:
        """With `ignores_case=None` the file system is asked. Files above `max_bytes` are left out."""
        self.root = root
        self._max_bytes = max_bytes
        self._is_windows = is_windows
        self._ignores_case = ignores_case
        self.servers = servers
        self._is_split = len(servers) > 1
        self._spellings: dict[Place, Place] = {}
        """The game's spelling of each name, by its folded form; used where the file system ignores case."""
        self._cache: dict[Path, tuple[tuple[int, int], str]] = {}
        self._rules: tuple[int, IgnoreRules] = (-1, IgnoreRules(()))
        self.left_out: dict[str, str] = {}
        """Files that cannot be in the game, and why."""
        self._links: dict[Path, bool] = {}
        """Whether a folder is a link or inside one; cached for one comparison."""
        self.skipped: set[Place] = set()
        """Files that exist but cannot be synced at the moment. Missing from a scan, they must not count as
        deleted."""

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the folder; raise if another sync holds it."""
        try:
            (self.root / OWN).mkdir(parents=True, exist_ok=True)
            ignored_by_git = self.root / OWN / ".gitignore"
            if not ignored_by_git.exists():
                ignored_by_git.write_text("*\n", encoding="utf-8")
            self.root = find_spelling(self.root)
        except OSError as failure:
            raise StorageError(
                f"The folder {self.root} cannot be used: {failure.strerror}.", next_step="Choose another one."
            ) from failure
        # One sync per folder: the stored state has a single writer.
        lock = FileLock(self.root / OWN / "lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise InvalidArgument(
                f"Another sync is running in {self.root}.", next_step="End that one first."
            ) from None
        try:
            yield
        finally:
            lock.release()

    # --- names ---------------------------------------------------------------------------------------------

    def path_of(self, place: Place) -> Path:
        """Return the local path of a file of the game."""
        server, filename = place
        return self.root / server / filename if self._is_split else self.root / filename

    def place_of(self, path: Path) -> Place | None:
        """Return the server and path of a local file; None if it is not synced."""
        relative = path.relative_to(self.root).as_posix()
        if self.is_ignored(relative):
            return None
        server, name = self.servers[0], relative
        if self._is_split:
            server, _, name = relative.partition("/")
            if server not in self.servers or not name:
                return None
        if not self._is_valid(name, relative):
            return None
        return self._spellings.get(_fold((server, name)), (server, name))

    def choose(self, places: Iterable[Place], known: Collection[Place]) -> list[Place]:
        """Return the files of the game that can be stored here, each in a file of its own.

        Where the file system ignores case, `a.js` and `A.js` would be one file, and the content of one would
        be pushed into the other. A known file wins, otherwise the first.
        """
        self._links = {}
        chosen = [place for place in places if self.accepts(place)]
        if not self.ignores_case():
            return chosen
        self._spellings = {}
        for place in sorted(chosen, key=lambda place: (place not in known, place)):
            other = self._spellings.setdefault(_fold(place), place)
            if other != place:
                self.left_out[place[1]] = f"Only its case tells it from {other[1]}; rename one in the game."
        return list(self._spellings.values())

    def list_oversized(self, contents: Mapping[Place, str]) -> set[Place]:
        """Return the files of the game that are too large to be synced."""
        oversized = set()
        for place, content in contents.items():
            # A character has at most 4 bytes, so most files need not be encoded to be measured.
            if 4 * len(content) > self._max_bytes and len(content.encode()) > self._max_bytes:
                self.left_out[place[1]] = "It is larger in the game than FILE_WRITE_MAX_BYTES."
                oversized.add(place)
        return oversized

    def ignores_case(self) -> bool:
        """Return whether names that differ only in case are one file here, as on Windows and macOS."""
        if self._ignores_case is None:
            (self.root / OWN).mkdir(parents=True, exist_ok=True)
            # Ask for our own folder in another spelling; the answer depends on the disk, not on the system.
            self._ignores_case = (self.root / OWN.upper()).exists()
        return self._ignores_case

    def accepts(self, place: Place) -> bool:
        """Return whether a file of the game can be stored in this folder.

        A web page can pose as a game, and a save can be anyone's, so names are untrusted: none may lead out
        of the folder.
        """
        _, name = place
        if not self._is_valid(name, name) or self.is_ignored(name):
            return False
        if self._is_windows and not fits_windows("/".join(place) if self._is_split else name):
            self.left_out[name] = "Windows cannot have a file of this name."
            return False
        path = self.path_of(place)
        # On Windows a name such as `C:x.js` replaces the folder in front of it.
        if not path.is_relative_to(self.root):
            return False
        if self.leads_out(path):
            self.left_out[name] = "It leads through a link."
            return False
        return True

    def leads_out(self, path: Path) -> bool:
        """Return whether a path is inside a linked folder, or links to a file outside of this folder."""
        parent = path.parent
        if parent not in self._links:
            # A linked folder inside of this one counts too: its files would be synced under two names.
            plain = os.path.join(os.path.realpath(self.root), parent.relative_to(self.root))  # noqa: PTH118
            self._links[parent] = os.path.realpath(parent) != os.path.normpath(plain)
        if self._links[parent]:
            return True
        return path.is_symlink() and not path.resolve().is_relative_to(self.root.resolve())

    def _is_valid(self, name: str, relative: str) -> bool:
        try:
            if paths.validate_filename(name) == name:
                return True
        except InvalidArgument as problem:
            self.left_out[relative] = problem.message
            return False
        self.left_out[relative] = "The game would call it by another name."
        return False

    def is_ignored(self, relative: str, *, is_folder: bool = False) -> bool:
        """Return whether a path is excluded, by our own rules or the ignore file's."""
        # Where case is ignored, `.Bridgehead/state.json` is our own file.
        ours = relative.lower() if self.ignores_case() else relative
        if any(_ALWAYS_IGNORED.ignores(name, is_folder=is_folder) for name in {ours, relative}):
            return True
        return self._read_rules().ignores(relative, is_folder=is_folder)

    def _read_rules(self) -> IgnoreRules:
        """Return the default rules followed by the ignore file's, which is read again when it changes."""
        path = self.root / IGNORE
        try:
            mark = path.stat().st_mtime_ns
        except OSError:
            mark = 0
        if self._rules[0] != mark:
            lines: list[str] = []
            with contextlib.suppress(OSError, UnicodeDecodeError):
                lines = split_lines(path.read_bytes()[:_MAX_IGNORE_BYTES].decode())
            self._rules = (mark, IgnoreRules((*DEFAULTS, *lines)))
        return self._rules[1]

    # --- contents ------------------------------------------------------------------------------------------

    def scan(self) -> Digests:
        """Return the digest of every file that can be in the game; unchanged files are not read again."""
        digests: Digests = {}
        self.skipped = set()
        for top, folders, names in os.walk(self.root):
            # In place, so that `os.walk` does not descend into these.
            folders[:] = [name for name in folders if not self._is_closed(Path(top, name))]
            for name in names:
                path = Path(top, name)
                place = self.place_of(path)
                if place is None:
                    continue
                known = self._digest(path)
                if known is not None:
                    digests[place] = known
                elif os.path.lexists(path):  # too large, not text, a link out of here, or being written
                    self.skipped.add(place)
        return digests

    def _is_closed(self, folder: Path) -> bool:
        relative = folder.relative_to(self.root).as_posix()
        if self.is_ignored(relative, is_folder=True):
            return True
        # Also on Windows, whose junctions `os.walk` takes for ordinary folders.
        if self.leads_out(folder / "x"):
            self.left_out[relative] = "It leads through a link."
            return True
        return False

    def _digest(self, path: Path) -> str | None:
        relative = path.relative_to(self.root).as_posix()
        try:
            if path.is_symlink() and self.leads_out(path):
                self.left_out[relative] = "It leads out of the folder."
                return None
            stat = path.stat()
        except OSError:
            return None
        if stat.st_size > self._max_bytes:
            self.left_out[relative] = f"It has {stat.st_size:,} bytes, more than FILE_WRITE_MAX_BYTES."
            return None
        # A file with the same time and size counts as unchanged, so a scan reads only files that were written
        # to.
        mark = (stat.st_mtime_ns, stat.st_size)
        cached = self._cache.get(path)
        if cached is not None and cached[0] == mark:
            return cached[1]
        content = self.read(path)
        if content is None:
            return None
        self._cache[path] = (mark, digest(content))
        return self._cache[path][1]

    def read(self, path: Path) -> str | None:
        """Return the content of a file, read between two equal stats; None if it is missing or not text."""
        for _ in range(_READ_ATTEMPTS):
            try:
                before = path.stat()
                data = durable.read(path)
                after = path.stat()
            except OSError:
                return None
            # Equal stats before and after, and the size that was read: no editor wrote in between.
            is_unchanged = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
            if is_unchanged and before.st_size == len(data):
                try:
                    return data.decode()
                except UnicodeDecodeError:
                    self.left_out[path.relative_to(self.root).as_posix()] = "It is not a text in UTF-8."
                    return None
        # Still being written; the next change event reads it again.
        return None

    def read_to_send(self, path: Path) -> str | None:
        """Return the content of a file; None if it is not for the game: missing, too large, or elsewhere."""
        content = None if self.leads_out(path) else self.read(path)
        return content if content is not None and len(content.encode()) <= self._max_bytes else None

    def replace(self, path: Path, content: str | None, scanned: str | None) -> bool:
        """Replace a file (None: delete it) only if it still is what was scanned; return whether it was.

        `scanned` is its digest, None if there was no file. Every write of sync goes through here.
        """
        if content is None:
            is_same = self._is_still(path, scanned)
            if is_same:
                durable.remove(path)
            return is_same
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        # Written elsewhere first: only a rename is left to do between the comparison and the new content.
        staged = self.root / OWN / f"staged-{secrets.token_hex(8)}"
        durable.replace(staged, content.encode(), mode=mode)
        try:
            if not self._is_still(path, scanned):
                return False
            path.parent.mkdir(parents=True, exist_ok=True)
            durable.retry_while_locked(staged.replace, path)
            durable.flush_folder(path.parent)
        finally:
            durable.remove(staged)
        return True

    def _is_still(self, path: Path, scanned: str | None) -> bool:
        if scanned is None:
            return not os.path.lexists(path)
        content = self.read(path)
        return content is not None and digest(content) == scanned

    def beside(self, place: Place) -> Path:
        """Return where the game's content goes if a file has changed on both sides."""
        path = self.path_of(place)
        return path.with_name(f"{path.stem}{FROM_GAME}{path.suffix}")

    # --- stored state --------------------------------------------------------------------------------------

    def load_state(self) -> State:
        """Return what the last sync stored; empty without one."""
        try:
            # Version 0.3 stored the agreed digests alone.
            stored = msgspec.json.decode(durable.read(self.root / OWN / "state.json"), type=State | _Rows)
        except (OSError, msgspec.DecodeError):
            return State()
        return stored if isinstance(stored, State) else State(agreed=stored)

    def store_state(self, state: State) -> None:
        """Store what the next sync has to know."""
        durable.replace(self.root / OWN / "state.json", msgspec.json.encode(state))

    def write_definitions(self, text: str) -> None:
        """Put the game's definitions beside the scripts, and a tsconfig.json if there is none."""
        with contextlib.suppress(OSError, BridgeError):
            path = self.root / DEFINITIONS
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                durable.replace(path, text.encode(), mode=0o644)
            # The user's own tsconfig.json is never overwritten.
            if not (self.root / CONFIG).exists():
                config = msgspec.json.format(msgspec.json.encode(_TSCONFIG)).decode()
                self.replace(self.root / CONFIG, config, None)


def fits_windows(name: str) -> bool:
    """Return whether a path is valid for an ordinary file on Windows.

    `aux.js` would be a device, `a:b.js` a stream of the file `a`, and `a./b.js` the same as `a/b.js`.
    """
    return not any(
        _RESERVED.fullmatch(part) or _UNWRITABLE.search(part) or part.endswith((".", " "))
        for part in name.split("/")
    )


def find_spelling(folder: Path) -> Path:
    """Return a folder's path as the disk spells it, which is how macOS reports changes."""
    try:
        from fcntl import F_GETPATH, fcntl  # type: ignore[attr-defined,unused-ignore]
    except ImportError:  # on other systems case matters, or `resolve` has corrected it
        return folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        spelling: bytes = fcntl(descriptor, F_GETPATH, bytes(_PATH_BYTES))
    finally:
        os.close(descriptor)
    return Path(os.fsdecode(spelling.rstrip(b"\0")))


def _fold(place: Place) -> Place:
    """Fold a name so that names which are one file on a case-insensitive file system are equal."""
    # NFC, because macOS may return letters and their accents separately.
    server, name = (unicodedata.normalize("NFC", part).lower() for part in place)
    return server, name
