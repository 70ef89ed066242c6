"""HTTP: a bridge served to any number of clients of every revision.

`application` makes it: Streamable HTTP at `/mcp`, and the older HTTP+SSE transport at `/sse` and `/messages`.
`run` serves it until a signal ends the process; `asgi` adapts it to any ASGI server. Importing this package
does not import a server.
"""

from .application import Application, application
from .asgi import asgi
from .guard import LOOPBACK

__all__ = ["LOOPBACK", "Application", "application", "asgi", "run"]


def run(app: Application, host: str = "127.0.0.1", port: int = 3000) -> None:
    """Serve the application until a signal ends the process."""
    from ..process import check_may_serve, run_to_end, socket_loop
    from .server import listen, serve

    check_may_serve()
    seconds = app.dispatcher.limits.shutdown_seconds
    run_to_end(serve(app, listen(host, port), shutdown_seconds=seconds), socket_loop, seconds)
