"""Fetching: what `bridgehead aoc fetch` asks for, how politely, and what it leaves in the folder."""

import os
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.event import open_event
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.site.client import GAP_SECONDS, SiteClient
from bridgehead.aoc.site.fetching import REMINDER, Fetcher
from bridgehead.runtime.errors import BridgeError
from tests.aoc.data import Data
from tests.aoc.site.stand_in import COOKIE, Site
from tests.support.person import COMMAND
from tests.support.posix import is_private


class Clock:
    """A clock that stands still, but for those who sleep by it."""

    def __init__(self, now: float = 1.8e9) -> None:
        self.time = now
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def fetcher(
    data: Data, site: Site, clock: Clock, said: list[str] | None = None, cookie: str = COOKIE
) -> Fetcher:
    settings = AocSettings(data.environment(AOC_YEAR="2024"))
    any_clock: Any = clock
    client = SiteClient(
        site.url,
        cookie,
        "me@example.org",
        data.folder.parent / "state",
        sleep=clock.sleep,
        now=clock.now,
    )
    return Fetcher(open_event(settings, any_clock), client, (said if said is not None else []).append)


def paths(site: Site) -> list[str]:
    return [asked.path for asked in site.asked]


def test_a_day_is_fetched_once_and_cached_for_ever(data: Data, site: Site) -> None:
    said: list[str] = []
    clock = Clock()
    fetcher(data, site, clock, said).fetch_day(1)
    fetcher(data, site, clock, said).fetch_day(1)

    event = data.folder / "2024"
    assert paths(site) == ["/2024/day/1", "/2024/day/1/input"]
    assert (event / "instructions" / "Day01_phase1.md").read_text() == (
        "## --- Day 1: Lanterns ---\n\nCount the *lit* ones & more.\n\n"
        "```\n1 2\n3 4\n```\n\n- one\n- two `x`\n"
    )
    assert (event / "inputs" / "day01.txt").read_text() == "200000\n"
    assert not (event / "instructions" / "Day01_phase2.md").exists()
    assert {"instructions/", "inputs/", "answers/"} <= set((event / ".gitignore").read_text().splitlines())
    assert REMINDER in said


def test_requests_are_polite(data: Data, site: Site) -> None:
    clock = Clock()
    fetcher(data, site, clock).fetch_day(1)

    assert clock.slept == [pytest.approx(GAP_SECONDS)]
    for asked in site.asked:
        assert asked.method == "GET"
        assert "contact: me@example.org" in asked.headers["user-agent"]
        assert asked.headers["user-agent"].startswith("bridgehead/")


def test_a_second_phase_and_known_answers_come_when_asked_for_again(data: Data, site: Site) -> None:
    clock = Clock()
    fetcher(data, site, clock).fetch_day(1)
    site.is_solved = True
    fetcher(data, site, clock).fetch_day(1, again=True)

    event = data.folder / "2024"
    assert paths(site) == ["/2024/day/1", "/2024/day/1/input", "/2024/day/1"]
    assert "--- Part Two ---\n\nAdd them *up*." in (event / "instructions" / "Day01_phase2.md").read_text()
    assert (event / "answers" / "Day01_phase1.txt").read_text() == "447\n"


@pytest.mark.parametrize(
    ("now", "day", "words"),
    [
        (1733029199.0, 1, "Day 1 of 2024 is not out yet. It comes out on 2024-12-01 at 05:00 UTC"),
        (1733029201.0, 2, "Day 2 of 2024 is not out yet."),
    ],
)
def test_a_day_that_is_not_out_is_refused_without_a_request(
    data: Data, site: Site, now: float, day: int, words: str
) -> None:
    with pytest.raises(BridgeError, match=words):
        fetcher(data, site, Clock(now)).fetch_day(day)

    assert site.asked == []


def test_a_private_leaderboard_is_fetched_every_fifteen_minutes_at_most(data: Data, site: Site) -> None:
    clock = Clock()
    fetcher(data, site, clock).fetch_board(77)
    with pytest.raises(BridgeError, match="less than 15 minutes ago"):
        fetcher(data, site, clock).fetch_board(77)
    clock.time += 15 * 60
    fetcher(data, site, clock).fetch_board(77)

    assert len(site.asked) == 2
    assert (data.folder / "2024" / "leaderboards" / "77.json").read_text() == '{"members": {}}'


def test_a_wrong_cookie_is_explained_and_never_shown(data: Data, site: Site) -> None:
    wrong = "f" * 128

    with pytest.raises(BridgeError) as refusal:
        fetcher(data, site, Clock(), cookie=wrong).fetch_day(1)

    assert "did not accept your session cookie" in str(refusal.value)
    assert wrong not in str(refusal.value)
    assert not (data.folder / "2024" / "inputs" / "day01.txt").exists()


def test_nothing_is_ever_submitted() -> None:
    sources = Path(__file__).parents[3] / "src" / "bridgehead" / "aoc"

    for path in sources.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "POST" not in text, path
        assert "/answer" not in text, path


# --- as a person types it ----------------------------------------------------------------------------------


def typed(data: Data, *arguments: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    session = str(data.folder.parent / "private" / "session")
    return subprocess.run(
        [COMMAND, "aoc", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, **data.environment(AOC_YEAR="2024", AOC_SESSION_FILE=session, **more)},
    )


def test_a_person_keeps_the_cookie_in_a_private_file_and_fetches_with_it(data: Data, site: Site) -> None:
    environment = {"AOC_SITE_URL": site.url, "AOC_CONTACT": "me@example.org"}

    unknown = typed(data, "fetch", "--day", "1", **environment)
    kept = typed(data, "cookie", given=f"session={COOKIE}\n")
    nameless = typed(data, "fetch", "--day", "1", AOC_SITE_URL=site.url)
    processes = [
        subprocess.Popen(
            [COMMAND, "aoc", "fetch", "--day", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                **data.environment(
                    AOC_YEAR="2024",
                    AOC_SESSION_FILE=str(data.folder.parent / "private" / "session"),
                    **environment,
                ),
            },
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=90)[0] for process in processes]

    session = data.folder.parent / "private" / "session"
    assert (unknown.returncode, "bridgehead aoc cookie" in unknown.stderr) == (2, True)
    assert (nameless.returncode, "AOC_CONTACT is not set" in nameless.stderr) == (2, True)
    assert (kept.returncode, is_private(session)) == (0, True)
    assert all(process.returncode == 0 for process in processes), said
    assert not any(COOKIE in text for text in (*said, kept.stdout, kept.stderr))
    gaps = [later.moment - earlier.moment for earlier, later in pairwise(site.asked)]
    assert len(site.asked) >= 2
    assert all(gap >= GAP_SECONDS - 0.1 for gap in gaps)  # over both processes


def test_the_usual_variables_name_a_proxy_to_the_site(data: Data, site: Site) -> None:
    typed(data, "cookie", given=COOKIE)
    elsewhere = {"AOC_SITE_URL": "http://localhost:9", "AOC_CONTACT": "me@example.org"}
    proxy = {"HTTP_PROXY": site.url, "NO_PROXY": "", "no_proxy": ""}
    here = {"NO_PROXY": "localhost", "no_proxy": "localhost"}  # one variable on Windows

    typed(data, "fetch", "--day", "1", **{**elsewhere, **proxy})
    through, *_ = paths(site)
    site.asked.clear()
    direct = typed(data, "fetch", "--day", "1", **{**elsewhere, **proxy, **here})

    assert through == "http://localhost:9/2024/day/1"
    assert (direct.returncode, "cannot be reached" in direct.stderr) == (2, True)
    assert site.asked == []


KEYRING = """
import pathlib

KEPT = pathlib.Path(__file__).with_name("kept")


def set_password(service, account, password):
    KEPT.write_text(f"{service} {account} {password}")


def get_password(service, account):
    if not KEPT.exists():
        return None
    *words, password = KEPT.read_text().split()
    assert words == [*service.split(), account]
    return password
"""
LOCKED = """
def get_password(service, account):
    raise OSError("locked")
"""


def put_keyring(folder: Path, program: str) -> str:
    """Put a stand-in for the package keyring there; returns the path to import it from."""
    folder.mkdir(exist_ok=True)
    (folder / "keyring.py").write_text(program, encoding="utf-8")
    return str(folder)


def test_the_cookie_can_be_kept_in_the_keyring(data: Data, site: Site) -> None:
    environment = {"AOC_SITE_URL": site.url, "AOC_CONTACT": "me@example.org"}
    path = put_keyring(data.folder.parent / "keyring", KEYRING)

    kept = typed(data, "cookie", "--keyring", given=COOKIE, PYTHONPATH=path)
    done = typed(data, "fetch", "--day", "1", PYTHONPATH=path, **environment)
    put_keyring(data.folder.parent / "keyring", LOCKED)
    locked = typed(data, "fetch", "--day", "2", PYTHONPATH=path, **environment)

    assert (kept.returncode, done.returncode, locked.returncode) == (0, 0, 2), (kept, done, locked)
    assert not (data.folder.parent / "private" / "session").exists()
    assert "The system's keyring cannot be used (OSError)" in locked.stderr
    assert COOKIE not in kept.stdout + kept.stderr + done.stdout + done.stderr + locked.stderr


def test_without_the_package_keyring_it_is_named(data: Data) -> None:
    path = put_keyring(data.folder.parent / "keyring", "raise ImportError")

    done = typed(data, "cookie", "--keyring", given=COOKIE, PYTHONPATH=path)

    assert "pip install keyring" in done.stderr


def test_a_cookie_that_others_can_read_is_refused(data: Data, site: Site) -> None:
    typed(data, "cookie", given=COOKIE)
    session = data.folder.parent / "private" / "session"
    session.chmod(0o644)

    done = typed(data, "fetch", "--day", "1", AOC_SITE_URL=site.url, AOC_CONTACT="me@example.org")

    assert (done.returncode, f"chmod 600 {session}" in done.stderr) == (2, True)
    assert site.asked == []


@pytest.mark.parametrize("given", ["", "hello", "session=", "xyz" * 20])
def test_what_is_no_cookie_is_not_kept(data: Data, given: str) -> None:
    done = typed(data, "cookie", given=given)

    assert (done.returncode, "This is not a session cookie." in done.stderr) == (2, True)
    assert not (data.folder.parent / "private" / "session").exists()


def test_a_site_in_the_open_is_refused(data: Data) -> None:
    done = typed(data, "fetch", "--day", "1", AOC_SITE_URL="http://adventofcode.example")

    assert (done.returncode, "AOC_SITE_URL" in done.stderr) == (2, True)
