"""Proxy: chooses the HTTP proxy for a URL from the environment. Does no I/O.

The variables are curl's: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in upper or lower case.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from bridgehead.runtime.settings import SettingError

HTTP_PORT, HTTPS_PORT = 80, 443
_EXPECTED = "the address of an HTTP proxy, such as http://proxy.example:8080"


class Proxy(Struct, frozen=True):
    """An HTTP proxy."""

    host: str
    port: int
    authorization: str | None = None


class Proxies(Struct, frozen=True, kw_only=True):
    """The values of the proxy variables."""

    https: str = ""
    http: str = ""
    other: str = ""
    exempt: tuple[str, ...] = ()
    """Hosts, domains and networks that are reached directly."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Proxies:
        """Read the variables; upper case wins over lower case."""

        def value(name: str) -> str:
            return (environment.get(name) or environment.get(name.lower()) or "").strip()

        exempt = tuple(entry.strip() for entry in value("NO_PROXY").split(",") if entry.strip())
        return cls(
            https=value("HTTPS_PROXY"), http=value("HTTP_PROXY"), other=value("ALL_PROXY"), exempt=exempt
        )

    def choose(self, url: str) -> Proxy | None:
        """Return the proxy for a URL; None for a direct connection. Raises SettingError for a bad address."""
        parts = urlsplit(url)
        is_secure = parts.scheme == "https"
        name, address = ("HTTPS_PROXY", self.https) if is_secure else ("HTTP_PROXY", self.http)
        if not address:
            name, address = "ALL_PROXY", self.other
        host = (parts.hostname or "").lower()
        if not address or any(_matches(host, entry.lower()) for entry in self.exempt):
            return None
        try:
            return _parse(address)
        except ValueError:
            # Secret, because the address may contain a password.
            raise SettingError(name, address, _EXPECTED, is_secret=True) from None


def _parse(address: str) -> Proxy:
    """Parse a proxy's address, with or without its scheme; raises ValueError."""
    scheme, _, rest = address.rpartition("://")
    parts = urlsplit(f"http://{rest}")
    is_clean = parts.path in {"", "/"} and not any(sign.isspace() or sign == "\\" for sign in rest)
    if scheme not in {"http", ""} or not parts.hostname or parts.port == 0 or not is_clean:
        raise ValueError(address)
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + b64encode(pair.encode()).decode()
    return Proxy(parts.hostname, parts.port or HTTP_PORT, authorization)


def _matches(host: str, entry: str) -> bool:
    """Match a host against an entry of NO_PROXY: *, a network, or a domain with its subdomains."""
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        name = entry.removeprefix("*").removeprefix(".").rpartition(":")[0] or entry.removeprefix("*.")
        name = name.removeprefix(".")
        return host == name or host.endswith("." + name)
