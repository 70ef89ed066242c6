"""Apps: pages that hosts show beside answers, who hears of them, and what clients without apps see."""

from pathlib import Path
from typing import Any

import pytest

from bridgehead.mcp import UI_EXTENSION, Bridge, Context, NoArguments, combine
from bridgehead.mcp.features.apps import MAX_PAGE_BYTES
from tests.support.checked import STATELESS, connect

APPS = {"extensions": {UI_EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]}}}
OTHER_PAGES = {"extensions": {UI_EXTENSION: {"mimeTypes": ["text/other"]}}}
URI = "ui://shop/window"
DOCUMENT = (
    "<!doctype html><style>/* bridgehead: app_style.css */</style><script>/* bridgehead: app_client.js */"
)


def look(args: NoArguments, ctx: Context[None]) -> str:
    return "a shop"


@pytest.fixture
def shop(tmp_path: Path) -> Bridge[None]:
    page = tmp_path / "window.html"
    page.write_text(DOCUMENT, encoding="utf-8")
    bridge: Bridge[None] = Bridge("shop", "1")
    bridge.app(URI, str(page), name="Window", description="What there is")
    bridge.tool("Look.", app=URI)(look)
    bridge.tool("Show.", name="show", app=URI, visible_to="app_hosts")(look)
    bridge.tool("More.", name="more", visible_to="app")(look)
    return bridge


async def list_tools(bridge: Bridge[Any], capabilities: dict[str, Any], **options: Any) -> dict[str, Any]:
    async with connect(bridge, capabilities=capabilities, **options) as client:
        return {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}


@pytest.mark.parametrize("options", [{}, {"revision": STATELESS}], ids=["handshake", "stateless"])
async def test_tools_of_a_page_are_listed_only_to_hosts_that_show_apps(
    shop: Bridge[None], options: dict[str, Any]
) -> None:
    found = await list_tools(shop, APPS, **options)

    assert {name: tool["_meta"]["ui"] for name, tool in found.items()} == {
        "look": {"resourceUri": URI},
        "show": {"resourceUri": URI},
        "more": {"visibility": ["app"]},
    }
    assert list(await list_tools(shop, {}, **options)) == ["look"]
    assert list(await list_tools(shop, OTHER_PAGES, **options)) == ["look"]
    assert set(await list_tools(combine("all", "1", [shop]), APPS, **options)) == {"look", "show", "more"}


@pytest.mark.parametrize("options", [{}, {"revision": STATELESS}], ids=["handshake", "stateless"])
async def test_a_page_is_read_whole_with_what_pages_share(
    shop: Bridge[None], options: dict[str, Any]
) -> None:
    async with connect(shop, capabilities=APPS, **options) as client:
        listed = (await client.request("resources/list"))["resources"]
        read = await client.request("resources/read", {"uri": URI})

    (content,) = read["contents"]
    assert [one["uri"] for one in listed] == [URI]
    assert content["mimeType"] == "text/html;profile=mcp-app"
    assert content["_meta"] == {"ui": {"prefersBorder": True}}
    assert "ui/initialize" in content["text"]
    assert "color-scheme" in content["text"]
    assert "bridgehead: app" not in content["text"]
    assert read.get("ttlMs") == (300_000 if options else None)


async def test_a_page_is_in_no_list_of_a_client_without_apps(shop: Bridge[None]) -> None:
    async with connect(shop) as client:
        assert (await client.request("resources/list"))["resources"] == []
        error = await client.error("tools/call", {"name": "lok"})

    assert error["data"]["tools"] == ["look"]


async def test_the_extension_is_declared_once_however_many_apps_there_are(
    shop: Bridge[None], tmp_path: Path
) -> None:
    shop.app("ui://shop/door", str(tmp_path / "window.html"), name="Door")
    async with connect(shop) as client:
        hello = await client.request("initialize", {})

    assert hello["capabilities"]["extensions"] == {UI_EXTENSION: {}}


def test_a_page_that_is_too_large_is_refused_when_it_is_declared(tmp_path: Path) -> None:
    page = tmp_path / "huge.html"
    page.write_text("x" * MAX_PAGE_BYTES, encoding="utf-8")

    with pytest.raises(ValueError, match=r"huge\.html has \d+ bytes .* at most 30000 fit"):
        Bridge("shop", "1").app(URI, str(page), name="Window")


def test_an_app_has_a_ui_address_and_comes_before_its_tools(tmp_path: Path) -> None:
    bridge: Bridge[None] = Bridge("shop", "1")

    with pytest.raises(ValueError, match="begins with ui://"):
        bridge.app("https://shop/window", str(tmp_path), name="Window")
    with pytest.raises(ValueError, match="declare it before its tools"):
        bridge.tool("Look.", app=URI)
