"""Proxies: who the client is behind them, and how it came to the first of them.

The headers of a proxy are believed only where the proxy itself is trusted. Of a chain of addresses, the last
one that no trusted proxy has is the client's: everything before it the client may have made up.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import NamedTuple

from .settings import Network

UNKNOWN = "unknown"
_MOST_HOPS = 32


class Origin(NamedTuple):
    """Where a request comes from."""

    address: str
    scheme: str


class Proxies:
    """The proxies that are trusted."""

    def __init__(self, trusted: tuple[Network, ...]) -> None:
        self._trusted = trusted
        self._is_trusted = lru_cache(maxsize=1024)(self._is_in)

    def __contains__(self, address: object) -> bool:
        """Tell whether an address is that of a trusted proxy."""
        return isinstance(address, str) and bool(self._trusted) and self._is_trusted(address)

    def origin(self, peer: str, scheme: str, headers: dict[bytes, bytes]) -> Origin:
        """Tell where a request comes from."""
        address = peer or UNKNOWN
        if not self._trusted or not self._is_trusted(address):
            return Origin(address, scheme)
        proto = headers.get(b"x-forwarded-proto", b"").split(b",")[-1].strip().lower()
        scheme = proto.decode() if proto in {b"http", b"https"} else scheme
        return Origin(self._client(address, headers), scheme)

    def _client(self, address: str, headers: dict[bytes, bytes]) -> str:
        hops = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
        for hop in reversed(hops[-_MOST_HOPS:]):
            found = _address(hop)
            if found is None:
                return address  # what is before this is no more worth than this
            address = found
            if not self._is_trusted(address):
                return address
        return address

    def _is_in(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None)
        return any((mapped or found) in network for network in self._trusted)


def _address(hop: str) -> str | None:
    """Read one hop: an address, in brackets or not, with a port or not."""
    text = hop.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
