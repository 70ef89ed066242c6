"""Client: how politely the site is asked, with whose cookie and by which way."""

import json
import subprocess
from itertools import pairwise

import pytest

from bridgehead.aoc.site.client import GAP_SECONDS
from bridgehead.runtime.errors import BridgeError
from tests.aoc.data import Data
from tests.aoc.site.person import BRIDGE, SITE_URL, fetcher, paths, typed, variables
from tests.aoc.site.stand_in import COOKIE, Site
from tests.support.clock import Clock
from tests.support.posix import is_private
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE


def test_requests_are_polite(data: Data, site: Site) -> None:
    clock = Clock()
    fetcher(data, site, clock).fetch_day(1)

    assert clock.slept == [pytest.approx(GAP_SECONDS)]
    for asked in site.asked:
        assert asked.method == "GET"
        assert "contact: me@example.org" in asked.headers["user-agent"]
        assert asked.headers["user-agent"].startswith("bridgehead/")


def test_a_private_leaderboard_is_fetched_every_fifteen_minutes_at_most(data: Data, site: Site) -> None:
    clock = Clock()
    fetcher(data, site, clock).fetch_board(77)
    with pytest.raises(BridgeError, match="less than 15 minutes ago"):
        fetcher(data, site, clock).fetch_board(77)
    clock.advance(15 * 60)
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


def test_an_id_of_seven_digits_is_one_of_a_private_leaderboard(data: Data) -> None:
    done = typed(data, "fetch", "--leaderboard", "4512345", AOC_CONTACT="me@example.org")

    assert (done.returncode, "bridgehead aoc cookie" in done.stderr) == (2, True)


def test_a_person_keeps_the_cookie_in_a_private_file_and_fetches_with_it(data: Data, site: Site) -> None:
    environment = {SITE_URL: json.dumps(site.url), "AOC_CONTACT": "me@example.org"}

    unknown = typed(data, "fetch", "--day", "1", **environment)
    kept = typed(data, "cookie", given=f"session={COOKIE}\n")
    nameless = typed(data, "fetch", "--day", "1", **{SITE_URL: json.dumps(site.url)})
    processes = [
        subprocess.Popen(
            [*BRIDGE, "fetch", "--day", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=variables(data, **environment),
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=PATIENCE)[0] for process in processes]

    session = data.folder.parent / "private" / "session"
    assert (unknown.returncode, "bridgehead aoc cookie" in unknown.stderr) == (2, True)
    assert (nameless.returncode, "AOC_CONTACT is not set" in nameless.stderr) == (2, True)
    assert (kept.returncode, is_private(session)) == (0, True)
    assert all(process.returncode == 0 for process in processes), said
    assert not any(COOKIE in text for text in (*said, kept.stdout, kept.stderr))
    gaps = [later.arrived - earlier.arrived for earlier, later in pairwise(site.asked)]
    assert len(site.asked) >= 2
    assert all(gap >= GAP_SECONDS - 0.1 for gap in gaps)  # over both processes


def test_the_usual_variables_name_a_proxy_to_the_site(data: Data, site: Site) -> None:
    typed(data, "cookie", given=COOKIE)
    elsewhere = {SITE_URL: '"http://localhost:9"', "AOC_CONTACT": "me@example.org"}
    proxy = {"HTTP_PROXY": site.url, "NO_PROXY": "", "no_proxy": ""}
    here = {"NO_PROXY": "localhost", "no_proxy": "localhost"}  # one variable on Windows

    typed(data, "fetch", "--day", "1", **{**elsewhere, **proxy})
    through, *_ = paths(site)
    site.asked.clear()
    direct = typed(data, "fetch", "--day", "1", **{**elsewhere, **proxy, **here})

    assert through == "http://localhost:9/2024/day/1"
    assert (direct.returncode, "cannot be reached" in direct.stderr) == (2, True)
    assert site.asked == []


def test_a_clock_that_was_set_back_makes_nobody_wait(data: Data, site: Site) -> None:
    fetcher(data, site, Clock(1.9e9)).fetch_day(1)
    clock = Clock(1.8e9)

    fetcher(data, site, clock).fetch_board(77)

    assert clock.slept == []


def test_a_request_that_was_refused_counts_as_one(data: Data, site: Site) -> None:
    clock = Clock()
    with pytest.raises(BridgeError, match="cookie"):
        fetcher(data, site, clock, cookie="f" * 128).fetch_day(1)

    fetcher(data, site, clock).fetch_board(77)

    assert clock.slept == [pytest.approx(GAP_SECONDS)]
