"""An HTTP/1.1 server: listening, TLS, parsing, fairness and shutdown. It is independent of MCP.

It calls one `Handler` (see `mcp.http.message`) for each request. httptools does the parsing.
"""

from .server import Server, listen, serve

__all__ = ["Server", "listen", "serve"]
