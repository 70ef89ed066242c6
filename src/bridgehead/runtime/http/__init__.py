"""The HTTP/1.1 client for APIs, authorisation servers and other processes of the same service.

There is no buffer between a socket and its reader, so a cancelled request closes the connection at once and a
slow reader slows the sender. Heads, proxy replies and whole bodies are bounded. A request that is not safe is
written at most once (see `pool`). There are no redirects, no cookies, no retries and no HTTP/2.
"""

from .connection import BodyTooLarge, CertificateRefused, ConnectFailed, ConnectionBroken, Response
from .pool import Exchange, Fetched, Pool, fetch
from .proxy import Proxies, Proxy

__all__ = [
    "BodyTooLarge",
    "CertificateRefused",
    "ConnectFailed",
    "ConnectionBroken",
    "Exchange",
    "Fetched",
    "Pool",
    "Proxies",
    "Proxy",
    "Response",
    "fetch",
]
