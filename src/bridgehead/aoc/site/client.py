"""Client: at most one request to the site every five seconds, over all processes of this user.

A file holds the time of the last request. Its folder is locked from reading it until the answer has arrived,
so that concurrent commands take turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from bridgehead import __version__
from bridgehead.runtime.directories import make_private
from bridgehead.runtime.errors import NotFound, TimedOut, Unavailable
from bridgehead.runtime.http import BodyTooLarge, ConnectFailed, ConnectionBroken, Proxy, fetch

from ..files.locking import FolderLock

SITE_URL = "https://adventofcode.com"
GAP_SECONDS = 5.0
BOARD_SECONDS = 15 * 60.0
REQUEST_SECONDS = 30.0
TURN_SECONDS = 600.0
"""How long a command waits for its turn."""
MAX_BYTES = 4 * 1024 * 1024
_OK, _NOT_FOUND, _TOO_MANY = 200, 404, 429
_BAD = frozenset({301, 302, 303, 307, 400, 401, 403, 500})
"""Statuses for an invalid cookie: a redirect to the login, 400, 401, 403 or 500."""


class SiteClient(Struct):
    """The site, asked with one user's cookie."""

    url: str
    cookie: str
    contact: str
    folder: Path
    """Holds the time of the last request, for all processes."""
    proxy: Proxy | None = None
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time

    def get(self, path: str, board: str = "") -> str:
        """GET a page in turn; `board` names a private leaderboard, fetched at most every 15 minutes."""
        make_private(self.folder)
        # Held over the pause and the request: another command of this user must not start in between. The
        # wait is long because each command before this one takes at least `GAP_SECONDS`.
        with FolderLock(str(self.folder), TURN_SECONDS).held(self.url):
            if board:
                wait = BOARD_SECONDS - (self.now() - self._read_time(f"leaderboard-{board}"))
                if wait > 0:
                    raise Unavailable(
                        "This leaderboard was fetched less than 15 minutes ago.",
                        next_step=f"Fetch it again in {wait / 60:.0f} min.",
                        retry_after=wait,
                    )
                # Before the request: to the site, a failed one counts too.
                (self.folder / f"leaderboard-{board}").write_text(f"{self.now():.3f}", encoding="ascii")
            since = self.now() - self._read_time("last-request")
            if 0 <= since < GAP_SECONDS:  # negative if the system clock was set back
                self.sleep(GAP_SECONDS - since)
            try:
                return self._get(path)
            finally:
                # After the answer, not before the request: the gap is between the end of one and the next.
                (self.folder / "last-request").write_text(f"{self.now():.3f}", encoding="ascii")

    def _read_time(self, name: str) -> float:
        try:
            return float((self.folder / name).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0.0

    def _get(self, path: str) -> str:
        headers = (
            ("Cookie", f"session={self.cookie}"),
            # The site asks programs for a contact address.
            ("User-Agent", f"bridgehead/{__version__} (aoc fetch; contact: {self.contact})"),
        )
        url = f"{self.url}{path}"
        try:
            response = asyncio.run(
                fetch(url, seconds=REQUEST_SECONDS, max_bytes=MAX_BYTES, headers=headers, proxy=self.proxy)
            )
        except (ConnectFailed, ConnectionBroken, BodyTooLarge, TimeoutError) as failure:
            raise TimedOut(
                f"{url} cannot be reached: {str(failure) or 'it took too long'}.",
                next_step="Try again later.",
            ) from failure
        if response.status != _OK:
            raise _refused(url, response.status)
        return response.body.decode(errors="replace")


def _refused(url: str, status: int) -> Exception:
    if status == _NOT_FOUND:
        return NotFound(f"{url} does not exist.", next_step="Is that day out yet?")
    if status in _BAD:
        return Unavailable(
            f"The site did not accept your session cookie (status {status}).",
            next_step="Log in with your browser and run `bridgehead aoc cookie` again.",
        )
    if status == _TOO_MANY:
        return Unavailable("The site asks for a pause (status 429).", next_step="Try again in an hour.")
    return Unavailable(f"The site answered with status {status}.", next_step="Try again later.")
