"""Forwarded: who the client is behind proxies, where they are trusted and where not."""

from pathlib import Path

import pytest

from bridgehead.host.proxies import TrustedProxies
from bridgehead.host.settings import NETWORKS
from tests.support.host_server import hosting
from tests.support.http_message import make_request

TRUSTED = NETWORKS.parse("10.0.0.0/8, 192.168.1.7, ::1, fd00::/8")


@pytest.mark.parametrize(
    ("peer", "header", "client"),
    [
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9, 10.2.3.4", "203.0.113.9"),
        ("10.0.0.1", "10.9.9.9, 10.2.3.4", "10.9.9.9"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9, unknown", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        ("10.0.0.1", "[2001:db8::5]:4711", "2001:db8::5"),
        ("10.0.0.1", "2001:db8::5", "2001:db8::5"),
        ("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("fd00::3", "203.0.113.9", "203.0.113.9"),
        ("8.8.8.8", "203.0.113.9", "8.8.8.8"),
        ("192.168.1.8", "203.0.113.9", "192.168.1.8"),
        ("/run/socket", "203.0.113.9", "/run/socket"),
    ],
)
def test_the_last_address_that_no_trusted_proxy_has_is_the_clients(
    peer: str, header: str, client: str
) -> None:
    headers = {b"x-forwarded-for": header.encode()}
    assert TrustedProxies(TRUSTED).origin(peer, "http", headers).address == client


def test_a_trusted_proxy_says_how_the_client_came() -> None:
    proxies = TrustedProxies(TRUSTED)
    assert proxies.origin("10.0.0.1", "http", {b"x-forwarded-proto": b"https"}).scheme == "https"
    assert proxies.origin("10.0.0.1", "http", {b"x-forwarded-proto": b"gopher"}).scheme == "http"
    assert proxies.origin("8.8.8.8", "http", {b"x-forwarded-proto": b"https"}).scheme == "http"


def test_of_several_schemes_the_nearest_proxys_counts() -> None:
    proxies = TrustedProxies(TRUSTED)
    assert proxies.origin("10.0.0.1", "http", {b"x-forwarded-proto": b"https, http"}).scheme == "http"
    assert proxies.origin("10.0.0.1", "http", {b"x-forwarded-proto": b"http, https"}).scheme == "https"


async def test_failures_are_logged_with_the_clients_own_address(tmp_path: Path) -> None:
    settings = {"BRIDGEHEAD_TRUSTED_PROXIES": "127.0.0.1", "BRIDGEHEAD_AUTH": "off"}
    async with hosting(tmp_path, settings) as host:
        await host.get("/nowhere", {"X-Forwarded-For": "203.0.113.9"})
        (line,) = host.logged("request rejected")

    assert line["address"] == "203.0.113.9"


@pytest.mark.parametrize("trusted", ["", "127.0.0.1"])
async def test_a_client_without_an_address_is_logged_as_unknown(tmp_path: Path, trusted: str) -> None:
    settings = {"BRIDGEHEAD_TRUSTED_PROXIES": trusted, "BRIDGEHEAD_AUTH": "off"}
    async with hosting(tmp_path, settings) as host:
        await host.app(make_request("GET", "/nowhere", ((b"host", b"localhost"),)))
        (line,) = host.logged("request rejected")

    assert line["address"] == "unknown"
