"""Proxy: whether requests go through another machine, as the usual variables say it. Pure."""

from __future__ import annotations

from base64 import b64encode
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from bridgehead.mercury.settings import MercurySettings, is_place
from bridgehead.runtime.settings import SettingError

HTTP_PORT, HTTPS_PORT = 80, 443


class Proxy(Struct, frozen=True):
    """A proxy that speaks HTTP."""

    host: str
    port: int
    authorization: str | None = None


def proxy_for(url: str, settings: MercurySettings) -> Proxy | None:
    """Give the proxy for a URL, if there is one for it; raises SettingError where it cannot be used."""
    parts = urlsplit(url)
    name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    chosen = settings.values[name]
    if not chosen:
        name, chosen = "ALL_PROXY", settings.all_proxy
    if not chosen or _is_exempt(parts.hostname or "", settings.no_proxy):
        return None
    scheme, _, place = chosen.rpartition("://")
    if scheme not in ("http", "") or not is_place(place.rstrip("/")):
        wanted = "the address of a proxy that speaks HTTP, such as http://proxy.example:8080"
        raise SettingError(name, chosen, wanted, is_secret=True)
    through = urlsplit(f"http://{place}")
    return Proxy(through.hostname or "", through.port or HTTP_PORT, _authorization(through))


def _authorization(through: SplitResult) -> str | None:
    if through.username is None:
        return None
    pair = f"{unquote(through.username)}:{unquote(through.password or '')}"
    return "Basic " + b64encode(pair.encode()).decode()


def _is_exempt(host: str, exempt: tuple[str, ...]) -> bool:
    return any(_matches(host.lower(), entry.lower()) for entry in exempt)


def _matches(host: str, entry: str) -> bool:
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        name = entry.removeprefix("*").removeprefix(".").rpartition(":")[0] or entry.removeprefix("*.")
        name = name.removeprefix(".")
        return host == name or host.endswith("." + name)
