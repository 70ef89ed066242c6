"""A stand-in for the site, on this machine: pages of an invented puzzle, and a note of every request."""

from tests.support.fake_api import Answer, FakeApi, Request

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


class Site:
    """The stand-in."""

    def __init__(self) -> None:
        self.api = FakeApi(self.respond)
        self.is_solved = False
        self.is_solved_twice = False

    @property
    def url(self) -> str:
        """Where it is."""
        return self.api.url

    @property
    def asked(self) -> list[Request]:
        """Every request, in the order in which they came."""
        return self.api.requests

    async def respond(self, request: Request) -> Answer:
        """Answer as the site does."""
        if request.headers.get("cookie") != f"session={COOKIE}":
            return Answer(500, b"Puzzle inputs differ by user. Please log in to get your puzzle input.")
        body = self._body(request.path)
        return Answer(200 if body else 404, body)

    def _body(self, path: str) -> bytes:
        page = FIRST + (SOLVED + SECOND if self.is_solved else "")
        page += SOLVED.replace("447", "512") if self.is_solved_twice else ""
        return {
            "/2024/day/1": f"<html><body><main>{page}</main></body></html>",
            "/2024/day/1/input": "200000\n",
            "/2024/leaderboard/private/view/77.json": '{"members": {}}',
        }.get(path, "").encode()
