"""A browser without a screen: keeps cookies, follows redirects, fills in forms with the proof they carry."""

import re
from collections.abc import Mapping
from html import unescape
from urllib.parse import urlencode

from tests.host.dashboard.test_templates import Reader, read
from tests.support.host_server import Host
from tests.support.http_client import Headers, HttpClient, Response

ACCEPT = "text/html,application/xhtml+xml,*/*;q=0.8"
FORM = "application/x-www-form-urlencoded"


class Browser:
    """One visitor of a host."""

    def __init__(self, host: Host | HttpClient) -> None:
        self._http = host if isinstance(host, HttpClient) else host.http
        self.cookies: dict[str, str] = {}
        self.html = ""
        self.status = 0
        self.headers: dict[str, str] = {}

    @property
    def page(self) -> Reader:
        """The page that is shown, as it is read."""
        return read(self.html)

    @property
    def proof(self) -> str:
        """The proof in the forms of the page."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.html)
        return unescape(found.group(1)) if found else ""

    async def open(self, path: str, headers: Headers | None = None, *, follows: bool = True) -> str:
        """Open a page, or the one that it sends to, and return its text."""
        response = await self._http.request(
            "GET", path, {"Content-Length": None, **self._own(), **(headers or {})}
        )
        return await self._take(response, follows=follows)

    async def submit(
        self, path: str, fields: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> str:
        """Send a form of the page that is shown, and follow where it leads."""
        body = urlencode({"csrf": self.proof, **(fields or {})}).encode()
        sent: Headers = {**self._own(), "Content-Type": FORM, **(headers or {})}
        return await self._take(await self._http.request("POST", path, sent, body))

    async def sign_in(self, token: str) -> str:
        """Show a token."""
        await self.open("/")
        return await self.submit("/dashboard/sign-in", {"token": token})

    def _own(self) -> Headers:
        kept = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"Accept": ACCEPT, "Cookie": kept or None}

    async def _take(self, response: Response, *, follows: bool = True) -> str:
        self.status, self.headers = response.status, response.headers
        self.html = (await response.body()).decode()
        for pair in response.cookies:
            name, _, value = pair.partition(";")[0].partition("=")
            self.cookies[name] = value
            if not value:
                del self.cookies[name]
        if self.status == 303 and follows:
            return await self.open(self.headers["location"])
        return self.page.text
