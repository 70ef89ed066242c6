"""A stand-in for the site, on this machine: pages of an invented puzzle, and a note of every request."""

import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple

COOKIE = "0123456789abcdef" * 8
FIRST = """<article class="day-desc"><h2>--- Day 1: Lanterns ---</h2>
<p>Count the <em>lit</em> ones &amp; more.</p>
<pre><code>1 2
3 4
</code></pre><ul><li>one</li><li>two <code>x</code></li></ul></article>"""
SECOND = (
    """<article class="day-desc"><h2 id="part2">--- Part Two ---</h2><p>Add them <em>up</em>.</p></article>"""
)
SOLVED = "<p>Your puzzle answer was <code>447</code>.</p>"


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    moment: float


class Site:
    """The stand-in."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.is_solved = False
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answer(self)

            def do_POST(self) -> None:
                site.answer(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer as the site does."""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.asked.append(Asked(handler.command, handler.path, headers, time.monotonic()))
        body = self._body(handler.path)
        if headers.get("cookie") != f"session={COOKIE}":
            handler.send_response(500)
            body = b"Puzzle inputs differ by user. Please log in to get your puzzle input."
        else:
            handler.send_response(200 if body else 404)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _body(self, path: str) -> bytes:
        page = FIRST + (SOLVED + SECOND if self.is_solved else "")
        return {
            "/2024/day/1": f"<html><body><main>{page}</main></body></html>",
            "/2024/day/1/input": "200000\n",
            "/2024/leaderboard/private/view/77.json": '{"members": {}}',
        }.get(path, "").encode()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
