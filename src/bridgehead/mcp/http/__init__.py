"""HTTP: a bridge served to any number of clients of every revision.

`application` makes it: Streamable HTTP at `/mcp`, and the older HTTP+SSE transport at `/sse` and `/messages`.
`run` serves it until a signal ends the process; `asgi` adapts it to any ASGI server. Importing this package
does not import a server.
"""

from .asgi import asgi
from .endpoint import Application, application
from .guard import LOOPBACK

__all__ = ["LOOPBACK", "Application", "application", "asgi", "run"]


def run(app: Application, host: str = "127.0.0.1", port: int = 3000) -> None:
    """Serve the application until a signal ends the process; log its address, or print it without logging."""
    from ..process import check_may_serve, run_to_end, socket_loop  # lazy: HTTP, 7 ms
    from .server import listen, serve

    check_may_serve()
    seconds = app.dispatcher.limits.shutdown_seconds
    listening = listen(host, port)
    _announce(app, host, listening.getsockname()[1])
    run_to_end(serve(app, listening, shutdown_seconds=seconds, unread=app.accounts), socket_loop, seconds)


def _announce(app: Application, host: str, port: int) -> None:
    import logging
    import sys

    info = app.dispatcher.bridge.info
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    lines = [(logging.INFO, f"{info.name} {info.version} at http://{name}:{port}/mcp")]
    if name not in LOOPBACK and not app.needs_authentication:
        text = "Anyone who can reach this address can call it without a token: pass tokens= to application()."
        lines.append((logging.WARNING, text))
    log = logging.getLogger(__name__)
    for level, line in lines:
        if log.hasHandlers():
            log.log(level, line)
        else:  # a script that configures no logging; standard output may be piped
            sys.stderr.write(f"{line}\n")
