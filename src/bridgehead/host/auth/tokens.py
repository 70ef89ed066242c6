"""Tokens: the file of tokens that open the host. Owns its format, its changes, and the check of a token.

A token is `bh_ID_SECRET`. The id finds the entry; the file holds only a hash of the long random secret. A
change locks the file and replaces it as a whole, so that a host may read it at any time. The last use of each
token is in a file of its own beside it, which a host writes once a minute and not for each request.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from bridgehead.runtime import durable, logs
from bridgehead.runtime.errors import BridgeError, InvalidArgument, NotFound, StorageError

from .grants import EVERYTHING, Grant

PREFIX = "bh"
NO_BRIDGE = "none"
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
WATCH_SECONDS = 0.5
SAVE_USES_SECONDS = 60.0
"""How often a host saves the last uses; a killed host loses at most this much."""
_LOCK_SECONDS = 10.0
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_VOID = "0" * 64
"""The hash of a token that was revoked on a full disk; the next change removes its entry."""
_NOBODY = sha256(b"nobody").hexdigest()
"""Compared in place of the hash of an unknown id, so that unknown and wrong tokens take equally long."""

log = logs.logger("host.auth")

Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_END_OF_TIME = 253_402_300_799
"""The last second of the year 9999, beyond which there are no dates."""
Time = Annotated[float, Meta(ge=0, le=_END_OF_TIME)]
"""Seconds since 1970."""


class Token(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One entry: everything about a token except its secret."""

    id: str
    name: str
    hash: Hash
    created: Time
    bridges: tuple[str, ...] = ()
    """Empty means all bridges; `none` stands for no bridge."""
    tools: tuple[str, ...] = ()
    """Patterns of tool names, with or without their prefix; empty means all tools of the bridges."""
    read_only: bool = False
    metrics: bool = False
    may_spend: bool = False
    """Whether a read-only token may call tools that cost money."""
    events: bool = False
    dashboard: bool = False
    admin: bool = False
    """Whether it may act in the dashboard; `dashboard` only views it."""
    per_minute: Annotated[int, Meta(ge=0)] = 0
    expires: Time | None = None
    old_hash: Hash | None = None
    """The hash of the secret before the last rotation, which works until `old_until`."""
    old_until: Time = 0.0

    def grant(self) -> Grant:
        """Return the rights of its caller."""
        bridges = frozenset(self.bridges or (EVERYTHING,)) - {NO_BRIDGE}
        return Grant(
            self.name,
            frozenset() if self.read_only else bridges,
            bridges if self.read_only else frozenset(),
            self.metrics,
            self.may_spend,
            self.per_minute,
            self.expires,
            self.id,
            self.events,
            self.dashboard,
            self.admin,
            self.tools,
        )


_OLD_RIGHT = "right:"
"""How versions before 0.3 wrote rights: as names among the bridges, `right:events` for example."""


class TokenList(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    tokens: tuple[Token, ...] = ()
    version: Annotated[int, Meta(ge=1, le=1)] = 1


def create_token(name: str, now: float, **options: object) -> tuple[Token, str]:
    """Make a token; return its entry and the token itself, which is shown this once."""
    if NAME.fullmatch(name) is None:
        raise InvalidArgument(
            f"{name!r} cannot be a token's name.",
            next_step="Use up to 64 letters, digits and . _ @ -, beginning with a letter or digit.",
        )
    own_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    entry = Token(id=own_id, name=name, hash=_hash(secret), created=now, **options)  # type: ignore[arg-type]
    return entry, f"{PREFIX}_{own_id}_{secret}"


def rotate_token(token: Token, now: float, overlap: float) -> tuple[Token, str]:
    """Give a token a new secret; return its entry and the token itself, which is shown this once.

    The old secret works for `overlap` more seconds. The id stays, so its callers keep their streams,
    tasks and sessions.
    """
    secret = secrets.token_urlsafe(32)
    entry = replace(token, hash=_hash(secret), old_hash=token.hash, old_until=now + overlap)
    return entry, f"{PREFIX}_{token.id}_{secret}"


def _hash(secret: str) -> str:
    # A fast hash is enough: a secret of 256 random bits cannot be guessed, unlike a password.
    return sha256(secret.encode()).hexdigest()


def name_is_taken(name: str) -> InvalidArgument:
    """Return the error for a name that has a token already."""
    return InvalidArgument(
        f"There is a token for {name} already.",
        next_step=f"Revoke it with bridgehead token revoke {name}, or choose another name.",
    )


def no_such_token(name: str, tokens: Iterable[Token]) -> NotFound:
    """Return the error for a name without a token; it lists the names that have one."""
    known = ", ".join(token.name for token in tokens) or "none"
    return NotFound(f"There is no token for {name}.", next_step=f"There are: {known}.")


def _named(name: str, tokens: list[Token]) -> Token:
    for token in tokens:
        if token.name == name:
            return token
    raise no_such_token(name, tokens)


class TokenStore(Protocol):
    """A file or a database of tokens. Blocks."""

    @property
    def where(self) -> str:
        """The path or address, for messages."""
        ...

    def read(self) -> TokenList:
        """Return all tokens."""
        ...

    def add(self, token: Token) -> None:
        """Add a token. Raises InvalidArgument if its name is taken."""
        ...

    def change(self, name: str, change: Callable[[Token], Token]) -> Token:
        """Replace a token by what a function makes of it, and return that. Raises NotFound."""
        ...

    def revoke(self, name: str) -> Token:
        """Delete a token and return it. Raises NotFound."""
        ...

    def merge_uses(self, uses: Mapping[str, float]) -> dict[str, float]:
        """Store later uses by token id; return the last use of every token that has one.

        In seconds since 1970.
        """
        ...


class TokenFile:
    """Tokens in a JSON file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._uses_path = path.with_suffix(".uses.json")

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self.path)

    def read(self) -> TokenList:
        """Return all tokens; none if the file does not exist. Raises StorageError for a broken file."""
        token_list = self._read()
        for token in token_list.tokens:
            old = [name for name in token.bridges if name.startswith(_OLD_RIGHT)]
            if old:  # read as bridge names they would open nothing: the token would lose rights silently
                raise StorageError(
                    f"The token {token.name} in {self.path} has its rights in the form of an older version: "
                    f"{', '.join(old)} among its bridges.",
                    next_step=f"Run bridgehead token revoke {token.name} and add it again with its rights. "
                    'To keep the token itself, edit its entry: "events": true instead of "right:events".',
                )
        return token_list

    def _read(self) -> TokenList:
        """Return the entries as they are, so that one in an old form can be revoked."""
        try:
            whole = msgspec.json.decode(durable.read(self.path), type=TokenList)
            return replace(whole, tokens=tuple(token for token in whole.tokens if token.hash != _VOID))
        except FileNotFoundError:
            return TokenList()
        except OSError as failure:
            raise StorageError(
                f"The tokens in {self.path} cannot be read: {failure.strerror}.",
                next_step="Let this user read the file, or name another one in BRIDGEHEAD_TOKENS_FILE.",
            ) from failure
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as failure:
            raise StorageError(
                f"{self.path} is not a file of tokens: {failure}.",
                next_step="Fix or move the file, then add the tokens again with bridgehead token add.",
            ) from failure

    def add(self, token: Token) -> None:
        """Add a token. Raises InvalidArgument if its name is taken."""
        with self._changing() as tokens:
            if any(other.name == token.name for other in tokens):
                raise name_is_taken(token.name)
            tokens.append(token)

    def change(self, name: str, change: Callable[[Token], Token]) -> Token:
        """Replace a token by what a function makes of it, and return that. Raises NotFound."""
        with self._changing() as tokens:
            token = _named(name, tokens)
            changed = tokens[tokens.index(token)] = change(token)
        return changed

    def revoke(self, name: str) -> Token:
        """Delete a token and return it. Raises NotFound."""
        try:
            with self._changing() as tokens:
                token = _named(name, tokens)
                tokens.remove(token)
        except StorageError as failure:
            if getattr(failure.__cause__, "errno", None) not in _NO_ROOM:
                raise
            return self._void(name)
        return token

    def _void(self, name: str) -> Token:
        """Revoke a token where there is no room for another file: overwrite its hashes, which takes none.

        The first changed byte revokes it, so it does not matter how much of them a power cut leaves.
        """
        with self._locked():
            data = durable.read(self.path)
            token = _named(name, list(self._read().tokens))
            descriptor = os.open(self.path, os.O_WRONLY)
            try:
                for known in filter(None, (token.hash, token.old_hash)):
                    os.lseek(descriptor, data.index(known.encode()), os.SEEK_SET)
                    os.write(descriptor, _VOID.encode())
                durable.flush(descriptor)
            finally:
                os.close(descriptor)
        return token

    def merge_uses(self, uses: Mapping[str, float]) -> dict[str, float]:
        """Store later uses by token id; return the last use of every token that has one."""
        if not uses:
            return self._read_uses()
        with self._locked():
            stored = self._read_uses()
            known = {token.id for token in self._read().tokens}  # uses of revoked tokens are dropped here
            latest = {
                own_id: max(stored.get(own_id, 0.0), uses.get(own_id, 0.0))
                for own_id in known & (stored.keys() | uses.keys())
            }
            durable.replace(self._uses_path, msgspec.json.encode(latest))
        return latest

    def _read_uses(self) -> dict[str, float]:
        # A missing or broken file means that no use is known; it must not lock anybody out.
        try:
            return msgspec.json.decode(durable.read(self._uses_path), type=dict[str, float])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """Yield the tokens as a list, under the file's lock, and write the list back."""
        with self._locked():
            token_list = self._read()
            tokens = list(token_list.tokens)
            yield tokens
            data = msgspec.json.format(msgspec.json.encode(replace(token_list, tokens=tuple(tokens))))
            durable.replace(self.path, data + b"\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the file's lock: it protects read, change and write against other commands and hosts.

        Readers need no lock, because files are replaced as a whole.
        """
        from filelock import FileLock, Timeout

        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=_LOCK_SECONDS, mode=0o600):
                yield
        except Timeout:
            raise StorageError(
                f"{self.path} is being changed by another process.", next_step="Try again in a moment."
            ) from None
        except OSError as failure:
            raise StorageError(
                f"The tokens cannot be written to {self.path}: {failure.strerror}.",
                next_step="Name a file that can be written to in BRIDGEHEAD_TOKENS_FILE.",
            ) from failure


class KnownToken(NamedTuple):
    """A token in a host's copy: the hash of its secret, its rights, and when it was made."""

    hash: str
    grant: Grant
    created: float
    old_hash: str | None = None
    """The hash of the secret before the last rotation, which works until `old_until`."""
    old_until: float = 0.0


class Tokens(ABC):
    """A host's copy of the tokens, kept up to date while it serves."""

    def __init__(self, store: TokenStore) -> None:
        self._store = store
        self._by_id: dict[str, KnownToken] = {}
        self._uses: dict[str, float] = {}
        """The last use of each token in this process since the last save."""
        self._saved_uses: dict[str, float] = {}
        """The last uses in the store, of all processes, as of the last save."""
        self._uses_problem = ""
        self._ended: set[str] = set()
        """Ids that a notice has revoked; a stale read of the file must not bring them back."""
        self._due = asyncio.Event()
        """Set when the tokens may have changed."""
        self.is_known = False
        """Whether they were ever read; until then every token is answered with 503, not 401."""
        self.problem = ""
        """Why the last read failed; the tokens read before stay valid."""

    @abstractmethod
    def read(self) -> None:
        """Read the tokens if they have changed."""

    @abstractmethod
    def refresh(self) -> None:
        """Read the tokens if they have changed while serving, and log it."""

    @abstractmethod
    async def wait(self) -> None:
        """Wait until the store may have changed, then read it."""

    def _replace(self, stored: TokenList) -> bool:
        """Use these tokens from now on; return whether they differ from before."""
        self.problem, self.is_known = "", True
        # An id stays in `_ended` until the store has deleted it too; then it cannot come back.
        self._ended &= {token.id for token in stored.tokens}
        tokens = [token for token in stored.tokens if token.id not in self._ended]
        before = self._by_id
        self._by_id = {
            token.id: KnownToken(token.hash, token.grant(), token.created, token.old_hash, token.old_until)
            for token in tokens
        }
        return before != self._by_id

    def end(self, token_id: str) -> None:
        """End a token that another host revoked, before the store is read again."""
        if self._by_id.pop(token_id, None) is not None:
            self._ended.add(token_id)
            log.info("a token was revoked", tokens=len(self))
        self.look_soon()

    def look_soon(self) -> None:
        """Wake `wait`, so that it reads the store now."""
        self._due.set()

    async def _wait_until_due(self, seconds: float) -> bool:
        """Wait at most `seconds` for `look_soon`; return whether it was called."""
        try:
            async with asyncio.timeout(seconds):
                await self._due.wait()
        except TimeoutError:
            return False
        self._due.clear()
        return True

    def __len__(self) -> int:
        return len(self._by_id)

    def grant_of(self, token: str, now: float = 0.0) -> Grant | None:
        """Return the grant of a token, also an expired one; None if it is unknown, wrong or rotated out."""
        prefix, _, rest = token.partition("_")
        own_id, _, secret = rest.partition("_")
        known = self._by_id.get(own_id)
        # In constant time, so that the delay reveals nothing about the hash.
        digest = _hash(secret)
        is_right = hmac.compare_digest(digest, _NOBODY if known is None else known.hash)
        if known is not None and known.old_hash is not None and now < known.old_until:
            is_right |= hmac.compare_digest(digest, known.old_hash)
        return known.grant if known is not None and is_right and prefix == PREFIX else None

    def find(self, token_id: str) -> KnownToken | None:
        """Return the token with an id."""
        return self._by_id.get(token_id)

    @property
    def listed(self) -> list[KnownToken]:
        """All tokens, sorted by name."""
        return sorted(self._by_id.values(), key=lambda token: token.grant.name or "")

    def has(self, grant: Grant) -> bool:
        """Tell whether a grant is still valid, unchanged."""
        known = self._by_id.get(grant.token_id)
        return known is not None and known.grant == grant

    def has_ended(self, token_id: str, now: float) -> bool:
        """Tell whether a token was revoked or has expired; always False for an OAuth token."""
        if not token_id:
            return False
        known = self._by_id.get(token_id)
        return known is None or (known.grant.expires is not None and known.grant.expires <= now)

    # --- last uses -----------------------------------------------------------------------------------------

    def note_use(self, token_id: str, now: float) -> None:
        """Note that a token was used. Called for every request, so it only writes to memory."""
        self._uses[token_id] = now

    @property
    def last_uses(self) -> dict[str, float]:
        """The last use of each token by its id, with those of other processes as of the last save."""
        latest = {**self._saved_uses}
        for own_id, used in self._uses.items():
            latest[own_id] = max(used, latest.get(own_id, 0.0))
        return latest

    async def keep_uses(self) -> None:
        """Save the uses every `SAVE_USES_SECONDS` until cancelled, then once more."""
        try:
            while True:
                await self.save_uses()
                await asyncio.sleep(SAVE_USES_SECONDS)
        finally:
            if self._uses:
                await self.save_uses()

    async def save_uses(self) -> None:
        """Merge the uses into the store, and read those of other processes. A failure is logged once."""
        taken, problem = dict(self._uses), ""
        try:
            self._saved_uses = await self._merge_uses(taken)
            # Uses noted during the save wait for the next one.
            self._uses = {own_id: used for own_id, used in self._uses.items() if used != taken.get(own_id)}
        except BridgeError as failure:
            problem = str(failure)
            if problem != self._uses_problem:
                log.warn("the last uses of tokens cannot be saved", problem=problem)
        self._uses_problem = problem

    async def _merge_uses(self, uses: Mapping[str, float]) -> dict[str, float]:
        return await asyncio.to_thread(self._store.merge_uses, uses)


class FileTokens(Tokens):
    """The tokens of a file, which is read again after every change."""

    def __init__(self, file: TokenFile) -> None:
        super().__init__(file)
        self._file = file
        self._seen: tuple[int, ...] | None = ()  # not None, which stands for a missing file

    def read(self) -> None:
        """Read the file if it has changed."""
        # Taken before the read: a change during the read is then noticed the next time.
        seen = _signature(self._file.path)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            stored = self._file.read()
        except StorageError as failure:
            self.problem = str(failure)
            return
        self._replace(stored)

    def refresh(self) -> None:
        """Read the file if it has changed while serving, and log it."""
        before = self._seen
        self.read()
        if self._seen == before:
            return
        if self.problem:
            log.error("the tokens cannot be read; the last ones stay valid", problem=self.problem)
        else:
            log.info("the tokens were read again", tokens=len(self))

    async def wait(self) -> None:
        """Check the file every `WATCH_SECONDS`, or sooner after `look_soon`."""
        await self._wait_until_due(WATCH_SECONDS)
        # In a thread, because a network drive may take its time, twice a second.
        if await asyncio.to_thread(_signature, self._file.path) != self._seen:
            self.refresh()


def _signature(path: Path) -> tuple[int, ...] | None:
    # The inode changes with every replacement of the file; an editor may keep it, so compare more.
    try:
        stat = os.stat(path)  # noqa: PTH116 - called for every unknown token; Path.stat is slower
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
