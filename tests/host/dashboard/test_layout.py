"""Layout: numbers and times as people read them, and files that a browser may keep."""

import re
from pathlib import Path

import pytest

from bridgehead.host.dashboard import layout
from bridgehead.host.dashboard.html import tag
from tests.host.dashboard.browsing import Browser
from tests.host.dashboard.test_html import read
from tests.support.host_server import bearer, hosting


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(None, "–"), (0.0004, "0.4 ms"), (0.00236, "2.36 ms"), (0.25, "250 ms"), (1.5, "1.5 s"), (60.0, "60 s")],
)
def test_a_latency_has_its_unit(seconds: float | None, written: str) -> None:
    assert layout.latency(seconds) == written


@pytest.mark.parametrize(
    ("seconds", "written"), [(-1, "0 s"), (59, "59 s"), (90, "2 min"), (7200, "2 h"), (200_000, "2 days")]
)
def test_a_duration_is_in_its_largest_unit(seconds: float, written: str) -> None:
    assert layout.duration(seconds) == written


@pytest.mark.parametrize(
    ("value", "written"), [(0, "0"), (0.25, "0.25"), (4.0, "4"), (12.6, "13"), (12345, "12,345")]
)
def test_a_number_is_easily_read(value: float, written: str) -> None:
    assert layout.number(value) == written


@pytest.mark.parametrize(
    ("value", "written"), [(5, "5 B"), (2048, "2 KiB"), (5 * 2**20, "5.0 MiB"), (2**50, "1024.0 TiB")]
)
def test_a_size_has_its_unit(value: float, written: str) -> None:
    assert layout.size(value) == written


def test_things_are_counted_in_words() -> None:
    assert (layout.plural(1, "file"), layout.plural(0, "file")) == ("1 file", "0 files")


def test_a_file_is_kept_until_it_changes() -> None:
    for path in layout.FILES:
        response = layout.serve_file(path)
        assert dict(response.headers)[b"cache-control"] == b"public, max-age=31536000, immutable"
        assert len(layout.version_of(path)) == 12


def test_a_page_can_be_read_without_its_script_and_by_keyboard() -> None:
    page = layout.Page("Title <x>", tag("h1", "Hello"), layout.CLIENTS, is_live=True)
    made = read(layout.render(page, visitor="<ann>", proof="p").body.decode())

    assert ("html", {"lang": "en"}) in made.elements
    assert any(attributes.get("href") == "#main" for _, attributes in made.elements)
    assert ("button", {"type": "button", "id": "pause", "hidden": None}) in made.elements
    current = [attributes["href"] for _, attributes in made.elements if "aria-current" in attributes]
    assert current == [layout.CLIENTS]
    assert "<ann>" in made.text


@pytest.mark.parametrize("front", ["", "/tools"], ids=["stripped by the proxy", "left in"])
async def test_behind_a_proxy_that_adds_a_path_every_address_has_it(tmp_path: Path, front: str) -> None:
    settings = {"BRIDGEHEAD_PUBLIC_URL": "https://team.example/tools"}
    async with hosting(tmp_path, settings, tokens={"ann": {"dashboard": True}}) as host:
        browser = Browser(host)
        await browser.open(f"{front}/")
        assert await browser.submit(f"{front}/dashboard/sign-in", {"token": host.secrets["ann"]})
        pages = [browser.html]
        for page in ("/dashboard/tools", "/dashboard/clients"):
            await browser.open(front + page)
            assert browser.status == 200
            pages.append(browser.html)
        addresses = re.findall(r'(?:href|src|action)="(/[^"]*)"', "".join(pages))
        assert len(addresses) > 20
        assert [address for address in addresses if not address.startswith("/tools/")] == []
        away = await browser.open(f"{front}/dashboard/sign-in", follows=False)
        assert (away, browser.headers["location"]) == ("", "/tools/")

        stream = await host.get(f"{front}/sse", bearer(host.secrets["ann"]))
        event = await stream.event()
        assert event is not None
        assert event.fields["data"].startswith("/tools/messages?session_id=")
        await stream.hang_up()
