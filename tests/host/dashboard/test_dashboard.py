"""Dashboard: what a person sees at `/`, and who sees it; other clients find what they always found there."""

from pathlib import Path

import pytest

from tests.host.conftest import Dial
from tests.host.dashboard.browsing import Browser
from tests.host.replicas.test_replica import replicas, sharing
from tests.support.host_bridges import StandIns
from tests.support.host_server import bearer, hosting
from tests.support.http_server import JSON_POST
from tests.support.messages import encode, request
from tests.support.redis_server import RedisServer

START = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
PAGES = ("/", "/dashboard/bridge?name=alpha", "/dashboard/clients", "/dashboard/failures")


@pytest.mark.parametrize("accept", [None, "application/json", "*/*", "application/json, text/event-stream"])
async def test_a_client_that_wants_no_html_finds_nothing_at_the_root(
    tmp_path: Path, accept: str | None
) -> None:
    async with hosting(tmp_path) as host:
        response = await host.get("/", {"Accept": accept})

        assert await host.refused(response, 404) == "There is nothing at /"


async def test_a_browser_sees_every_bridge_and_its_far_side(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        host.far["beta"].is_there = False
        browser = Browser(host)
        text = await browser.open("/")

        assert browser.status == 200
        assert "The far side of alpha is there." in text
        assert "The far side of beta is away." in text
        assert ("not connected" in text, "ready" in text) == (True, True)


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_guarded_by_a_strict_policy(tmp_path: Path, path: str) -> None:
    async with hosting(tmp_path) as host:
        browser = Browser(host)
        await browser.open(path)

        assert browser.status == 200
        policy = browser.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert browser.headers["x-content-type-options"] == "nosniff"
        assert browser.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in browser.headers
        elements = browser.page.elements
        assert not [name for name, attributes in elements if "style" in attributes or "onclick" in attributes]
        assert [attributes.get("src", "") for name, attributes in elements if name == "script"] != []
        addresses = [
            value for _, attributes in elements for key, value in attributes.items() if key in {"src", "href"}
        ]
        assert all(value and value.startswith(("/", "#")) for value in addresses)


async def test_calls_that_failed_are_shown_with_what_to_do(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        host.far["alpha"].is_there = False
        await host.try_call("/mcp", "alpha_echo")
        text = await Browser(host).open("/dashboard/failures")

        assert "alpha_echo" in text
        assert "The far side of alpha is away. Try again later." in text


async def test_the_page_can_be_switched_off(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_DASHBOARD": "off"}) as host:
        for path in ("/", "/dashboard/clients", "/dashboard/style.css"):
            assert (await host.get(path, {"Accept": "text/html"})).status == 404


async def test_everything_that_a_browser_loads_is_small_and_kept(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        browser = Browser(host)
        await browser.open("/")
        total = len(browser.html)
        loaded = {
            value
            for _, attributes in browser.page.elements
            for key, value in attributes.items()
            if key in {"src", "href"} and value and "?v=" in value
        }
        for path in loaded:
            response = await host.get(path)
            total += len(await response.body())
            assert "immutable" in response.headers["cache-control"]

        assert len(loaded) == 3
        assert total < 100_000


async def test_the_range_of_the_charts_is_in_the_address(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        browser = Browser(host)
        for path in ("/?range=day", "/dashboard/bridge?name=alpha&range=day"):
            assert "Failed calls in 5 min" in await browser.open(path)
        text = await browser.open("/?range=year")

    assert (browser.status, "Use one of: quarter, hour, day." in text) == (400, True)


async def test_a_page_for_a_method_or_a_bridge_that_is_not_there_says_so(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        browser = Browser(host)
        assert "no such bridge" in await browser.open("/dashboard/bridge?name=gamma")
        assert browser.status == 404
        response = await host.http.request("DELETE", "/dashboard/clients", {"Accept": "text/html"})
        assert response.status == 405
        assert (await host.http.request("POST", "/dashboard/style.css")).status == 405


async def test_a_mistyped_address_of_the_dashboard_is_a_page_for_people_and_json_for_programs(
    tmp_path: Path,
) -> None:
    async with hosting(tmp_path) as host:
        browser = Browser(host)
        text = await browser.open("/dashboard/clinets")
        assert (browser.status, "There is nothing at /dashboard/clinets" in text) == (404, True)
        assert {"href": "/dashboard/clients"} in [attributes for _, attributes in browser.page.elements]
        answer = await host.get("/dashboard/clinets", {"Accept": "application/json"})
        assert await host.refused(answer, 404) == "There is nothing at /dashboard/clinets"
        await browser.open("/dashboard/", follows=False)
        assert (browser.status, browser.headers["location"]) == (303, "/")


async def test_a_bridge_that_a_token_does_not_open_tells_it_nothing(tmp_path: Path) -> None:
    tokens = {"ann": {"bridges": ("alpha",), "dashboard": True}}
    async with hosting(tmp_path, tokens=tokens) as host:
        host.far["beta"].is_there = False
        await host.try_call("/mcp", "beta_echo", bearer(host.token("all")))
        browser = Browser(host)
        text = await browser.sign_in(host.secrets["ann"])

        assert "The far side of alpha is there." in text
        assert "The far side of beta" not in text
        assert "no such bridge" in await browser.open("/dashboard/bridge?name=beta")


async def test_a_bridge_that_cannot_be_made_is_shown_with_its_reason(tmp_path: Path) -> None:
    stand_ins = StandIns("alpha", "beta")
    stand_ins.unmakeable["beta"] = OSError(28, "No space left on device")
    async with hosting(tmp_path, stand_ins=stand_ins) as host:
        text = await Browser(host).open("/")

        assert "not serving" in text
        assert "No space left on device" in text


async def test_a_session_is_ended_from_whichever_replica_answers_the_browser(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with replicas(tmp_path, {}, {}, **sharing(redis_server)) as (one, other):
        opened = await dial(one.port).request("POST", "/mcp", JSON_POST, encode(request("initialize", START)))
        await opened.body()
        browser, elsewhere = Browser(dial(one.port)), Browser(dial(other.port))
        assert "c 1127.0.0.1" in await browser.open("/dashboard/clients")
        shown = {str(a["name"]): str(a["value"]) for _, a in browser.page.elements if a.get("value")}
        # Cookies are named after the port, which is the balancer's for both.
        for name, value in browser.cookies.items():
            elsewhere.cookies[name.replace(str(one.port), str(other.port))] = value

        await elsewhere.submit("/dashboard/end-session", shown)

        assert "c 1127.0.0.1" not in await browser.open("/dashboard/clients")
