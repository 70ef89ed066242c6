"""A person who fetches: the command as it is typed, and a fetcher whose clock a test holds."""

import subprocess

from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.site.client import SiteClient
from bridgehead.aoc.site.fetching import Fetcher
from bridgehead.aoc.workspace import open_workspace
from tests.aoc.data import Data
from tests.aoc.data import typed as typed_as_is
from tests.aoc.site.stand_in import COOKIE, Site
from tests.support.clock import Clock


def fetcher(
    data: Data, site: Site, clock: Clock, said: list[str] | None = None, cookie: str = COOKIE
) -> Fetcher:
    """Make a fetcher for a user with a cookie."""
    settings = AocSettings(data.environment(AOC_YEAR="2024"))
    client = SiteClient(
        site.url,
        cookie,
        "me@example.org",
        data.folder.parent / "state",
        sleep=clock.sleep,
        now=clock.now,
    )
    return Fetcher(open_workspace(settings, clock), client, (said if said is not None else []).append)


def paths(site: Site) -> list[str]:
    """Return what the site was asked for."""
    return [asked.path for asked in site.asked]


def typed(data: Data, *arguments: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """Run `bridgehead aoc …`, with the cookie in a file of its own and something typed in."""
    session = str(data.folder.parent / "private" / "session")
    return typed_as_is(data, *arguments, given=given, AOC_YEAR="2024", AOC_SESSION_FILE=session, **more)
