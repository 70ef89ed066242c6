"""Proxies: the address and scheme of a client behind trusted proxies.

X-Forwarded headers count only if the peer is a trusted proxy. The client is the last address of the chain
that is not a trusted proxy: the client itself may have sent everything before it.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import NamedTuple

from .settings import Network

UNKNOWN = "unknown"
"""The address of a peer without one, such as on a Unix socket."""
_MAX_HOPS = 32


class Origin(NamedTuple):
    """The client's address and the scheme it used."""

    address: str
    scheme: str


class TrustedProxies:
    """The trusted proxies."""

    def __init__(self, trusted: tuple[Network, ...]) -> None:
        self.trusted = trusted
        # Cached, because parsing an address and comparing it with each network is repeated on every request.
        self._is_trusted = lru_cache(maxsize=1024)(self._is_in)

    def __contains__(self, address: object) -> bool:
        """Tell whether an address is that of a trusted proxy."""
        return isinstance(address, str) and bool(self.trusted) and self._is_trusted(address)

    def origin(self, peer: str, scheme: str, headers: dict[bytes, bytes]) -> Origin:
        """Return the origin of a request from `peer`."""
        address = peer
        if not self._is_trusted(address):
            return Origin(address, scheme)
        # The last value is the one that the nearest proxy wrote.
        proto = headers.get(b"x-forwarded-proto", b"").split(b",")[-1].strip().lower()
        scheme = proto.decode() if proto in {b"http", b"https"} else scheme
        hops = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
        for hop in reversed(hops[-_MAX_HOPS:]):
            parsed = _parse_hop(hop)
            if parsed is None:
                break  # no trusted proxy wrote this, so nothing before it is trusted either
            address = parsed
            if not self._is_trusted(address):
                break
        return Origin(address, scheme)

    def _is_in(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        # On a socket for both families, IPv4 peers appear as ::ffff:192.0.2.1.
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in self.trusted)


def _parse_hop(hop: str) -> str | None:
    """Parse an address with or without brackets and port."""
    text = hop.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:  # more than one colon is an IPv6 address
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
