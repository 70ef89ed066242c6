"""Fetching: download a day's text, input and known answers, or a private leaderboard.

Files that exist are not requested again. A day that is not out is refused without a request. Nothing is ever
submitted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct

from bridgehead.runtime import durable
from bridgehead.runtime.errors import InvalidArgument, StorageError, Unavailable

from ..files import layout
from ..starter import ignore_puzzles
from ..workspace import Workspace
from .client import SiteClient
from .page import parse_page

REMINDER = "The site asks people not to use AI to solve its puzzles for the leaderboards."
_RELEASE_HOUR_UTC = 5
"""A day's puzzle appears at midnight UTC-5."""


class Fetcher(Struct):
    """Fetches into one workspace."""

    workspace: Workspace
    client: SiteClient
    report: Callable[[str], None]

    def fetch_day(self, day: int, *, again: bool = False) -> None:
        """Fetch the missing files of a day; `again` requests the text for a second phase unlocked since."""
        self._check_is_out(day)
        folders = self.workspace.folders
        self._keep_out_of_git()  # before the first text is written
        first, second = (Path(folders.instructions) / layout.markdown_name(day, phase) for phase in (1, 2))
        answers = [Path(folders.answers) / layout.answer_name(day, phase) for phase in (1, 2)]
        if day == layout.last_day(self.workspace.year):  # it has no second puzzle
            files = [first, answers[0]]
        else:
            files = [first, second, *answers]
        # An answer is on the page only after the user has given it, which may be long after the text.
        if not first.exists() or (again and not all(path.exists() for path in files)):
            page = parse_page(self.client.get(f"/{self.workspace.year}/day/{day}"))
            # The page has one text, or two once the user has solved the first phase.
            for path, text in zip((first, second), page.phases, strict=False):
                self._save(path, text)
            if len(page.phases) == 1 and first.exists():
                self.report("Phase 2 is not shown to you yet; `fetch --again` looks for it")
            for path, answer in zip(answers, page.answers, strict=False):
                self._save(path, answer + "\n")
        else:
            self.report(f"{first} exists already")
        puzzle_input = Path(folders.inputs) / layout.input_name(day)
        if puzzle_input.exists():
            self.report(f"{puzzle_input} exists already")
        else:
            self._save(puzzle_input, self.client.get(f"/{self.workspace.year}/day/{day}/input"))
        self.report(REMINDER)

    def fetch_board(self, number: int) -> None:
        """Fetch a private leaderboard, at most every 15 minutes."""
        year = self.workspace.year
        path = Path(self.workspace.folders.inputs).parent / "leaderboards" / f"{number}.json"
        self._keep_out_of_git()
        text = self.client.get(f"/{year}/leaderboard/private/view/{number}.json", board=f"{year}-{number}")
        try:
            msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise Unavailable(
                "The site's answer is not a leaderboard.", next_step="Are you in it?"
            ) from error
        self._save(path, text, is_kept=False)

    def _check_is_out(self, day: int) -> None:
        year = self.workspace.year
        if day > layout.last_day(year):
            raise InvalidArgument(f"The event of {year} has {layout.last_day(year)} days.")
        out = datetime(year, 12, day, _RELEASE_HOUR_UTC, tzinfo=UTC)
        wait = out - datetime.fromtimestamp(self.workspace.clock.now(), UTC)
        if wait > timedelta(0):
            raise Unavailable(
                f"Day {day} of {year} is not out yet.",
                next_step=f"It comes out on {out:%Y-%m-%d at %H:%M} UTC; no request was sent.",
                retry_after=wait.total_seconds(),
            )

    def _save(self, path: Path, text: str, *, is_kept: bool = True) -> None:
        if is_kept and path.exists():
            return
        try:
            durable.make_folder(path.parent)
            durable.replace(path, text.encode(), mode=0o644)
        except OSError as failure:
            raise StorageError(f"{path} cannot be written: {failure.strerror or failure}.") from failure
        self.report(f"fetched {path}")

    def _keep_out_of_git(self) -> None:
        """Write `.gitignore` before the first text: the site's texts must not be published by accident."""
        ignore_puzzles(Path(self.workspace.folders.inputs).parent)
