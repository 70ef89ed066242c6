"""The HTTP/1.1 server: listening, parsing, connections, TLS and writing. It knows nothing of what it serves.

It calls one `Handler` (see `mcp.http.message`) for every request. Parsing is httptools'.
"""

from .server import Server, listen, serve

__all__ = ["Server", "listen", "serve"]
