"""Cookie: where it is kept, who may read it, and that nothing ever shows it."""

import json
from pathlib import Path

import pytest

from bridgehead.aoc.site.cookie import parse_cookie
from tests.aoc.data import Data
from tests.aoc.site.person import SITE_URL, typed
from tests.aoc.site.stand_in import COOKIE, Site

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
    environment = {SITE_URL: json.dumps(site.url), "AOC_CONTACT": "me@example.org"}
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

    done = typed(
        data, "fetch", "--day", "1", AOC_CONTACT="me@example.org", **{SITE_URL: json.dumps(site.url)}
    )

    assert (done.returncode, f"chmod 600 {session}" in done.stderr) == (2, True)
    assert site.asked == []


@pytest.mark.parametrize("given", ["", "hello", "session=", "xyz" * 20])
def test_what_is_no_cookie_is_not_kept(data: Data, given: str) -> None:
    done = typed(data, "cookie", given=given)

    assert (done.returncode, "This is not a session cookie." in done.stderr) == (2, True)
    assert not (data.folder.parent / "private" / "session").exists()


@pytest.mark.parametrize(
    "pasted", [COOKIE, f" {COOKIE}\r\n", f"session={COOKIE}", f'session="{COOKIE}"', f"session= {COOKIE} "]
)
def test_a_cookie_is_understood_as_browsers_copy_it(pasted: str) -> None:
    assert parse_cookie(pasted) == COOKIE
