"""Proxies: which one is for a URL, as the usual variables say it."""

import base64

import pytest

from bridgehead.runtime.http import Proxies, Proxy
from bridgehead.runtime.settings import SettingError


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("https://api.example/v1", {}, None),
        ("https://api.example/v1", {"HTTPS_PROXY": "http://proxy:8080"}, Proxy("proxy", 8080)),
        ("https://api.example/v1", {"https_proxy": "proxy:8080"}, Proxy("proxy", 8080)),
        ("https://api.example/v1", {"https_proxy": "http://[::1]:8080/"}, Proxy("::1", 8080)),
        ("https://api.example/v1", {"HTTP_PROXY": "http://proxy:8080"}, None),
        ("http://api.example/v1", {"ALL_PROXY": "http://proxy"}, Proxy("proxy", 80)),
        ("http://api.example/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "example"}, None),
        ("http://api.example/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "other, .example"}, None),
        ("http://api.example/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "ample"}, Proxy("p", 1)),
        ("http://api.example/v1", {"HTTP_PROXY": "p:1", "no_proxy": "*"}, None),
        ("http://10.1.2.3/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "10.0.0.0/8"}, None),
        ("http://11.1.2.3/v1", {"HTTP_PROXY": "p:1", "NO_PROXY": "10.0.0.0/8"}, Proxy("p", 1)),
    ],
)
def test_the_proxy_is_that_of_the_environment(
    url: str, environment: dict[str, str], expected: Proxy | None
) -> None:
    assert Proxies.from_environment(environment).choose(url) == expected


def test_credentials_of_a_proxy_are_sent_to_it() -> None:
    proxy = Proxies(http="http://me:s%40fe@p:1").choose("http://api/")

    assert proxy is not None
    assert proxy.authorization == "Basic " + base64.b64encode(b"me:s@fe").decode()


@pytest.mark.parametrize(
    "address", ["socks5://me:safe@p:1", "https://p:1", "http://", "p:x", "p:99999", "a b", "p/path"]
)
def test_a_proxy_that_cannot_be_used_is_refused_without_showing_its_password(address: str) -> None:
    with pytest.raises(SettingError, match="HTTP_PROXY") as refused:
        Proxies(http=address).choose("http://api/")

    assert "safe" not in str(refused.value)
