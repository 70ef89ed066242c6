"""HTTP: a bridge served as an ASGI application, to any number of clients of every revision.

`application` makes it: Streamable HTTP at `/mcp`, and beside it the older HTTP+SSE transport at `/sse` and
`/messages`. `run` serves it until the process is told to end; any other ASGI server can do so too. Importing
this package does not import a server.
"""

from .application import Application, application
from .guard import LOOPBACK

__all__ = ["LOOPBACK", "Application", "application", "run"]


def run(app: Application, host: str = "127.0.0.1", port: int = 3000) -> None:
    """Serve the application until the process is told to end."""
    from .server import run as serve

    serve(app, host, port)
