"""The HTTP/1.1 client: towards the API, an authorisation server, or another worker of the same host.

Nothing stands between a socket and its reader, so a cancelled request reaches the other side at once and a
slow reader slows the sender. Heads, proxy replies and whole bodies are bounded. A request that is not safe is
written at most once (see `pool`). There are no redirects, no cookies, no retries and no HTTP/2.

Too dear for a server's first answer (asyncio, ssl, httptools): import it where the first request is made.
"""

from .pool import Exchange, Fetched, Pool, fetch
from .proxy import Proxies, Proxy
from .response import BodyTooLarge, ConnectFailed, ConnectionBroken, Response

__all__ = [
    "BodyTooLarge",
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
