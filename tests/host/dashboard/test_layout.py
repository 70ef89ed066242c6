"""Layout: a page can be used without its script, and a browser may keep its files."""

import re
from pathlib import Path

import pytest
from markupsafe import Markup

from bridgehead.host.dashboard import layout
from tests.host.dashboard.browsing import Browser
from tests.host.dashboard.test_templates import read
from tests.support.host_server import bearer, hosting


def test_a_file_is_kept_until_it_changes() -> None:
    for path in layout.FILES:
        response = layout.serve_file(path)
        assert dict(response.headers)[b"cache-control"] == b"public, max-age=31536000, immutable"
        assert len(layout.version_of(path)) == 12


def test_a_page_can_be_read_without_its_script_and_by_keyboard() -> None:
    page = layout.Page("Title <x>", Markup("<h1>Hello</h1>"), layout.CLIENTS, is_live=True)
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
        for page in ("/dashboard/failures", "/dashboard/clients"):
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
