"""A person who fetches: the command as it is typed, and a fetcher whose clock a test holds."""

import os
import subprocess
import sys

from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.site.client import SiteClient
from bridgehead.aoc.site.fetching import Fetcher
from bridgehead.aoc.workspace import open_workspace
from tests.aoc.data import Data
from tests.aoc.site.stand_in import COOKIE, Site
from tests.support import constants
from tests.support.clock import Clock
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE

BRIDGE = (sys.executable, "-m", "tests.support.constants", "aoc")
SITE_URL = "bridgehead.aoc.site.client:SITE_URL"


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
    return subprocess.run(
        [*BRIDGE, *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=ROOT,
        env=variables(data, **more),
    )


def variables(data: Data, **more: str) -> dict[str, str]:
    """Make the environment of such a command; `module:NAME` sets a constant, and PYTHONPATH comes on top."""
    session = str(data.folder.parent / "private" / "session")
    path = os.pathsep.join([*([more.pop("PYTHONPATH")] if "PYTHONPATH" in more else []), str(ROOT / "src")])
    own = data.environment(AOC_YEAR="2024", AOC_SESSION_FILE=session, PYTHONPATH=path, **more)
    return {**os.environ, "COLUMNS": "100", **constants.split(own)}
