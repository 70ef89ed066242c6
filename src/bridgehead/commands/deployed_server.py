"""Deployed server: what a client meets at a URL: TLS, sign-in, discovery, tools, a call, latency.

It is looked at as clients do it, with the same requests, and nothing is changed: the tool that is called says
of itself that it only reads, and needs no arguments.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bridgehead.runtime.findings import Finding
from bridgehead.runtime.http import BodyTooLarge, ConnectFailed, ConnectionBroken, Pool, Proxies
from bridgehead.runtime.settings import hide_credentials

REVISION = "2025-11-25"
"""What most clients ask for today; every server of ours and of others knows it."""
SECONDS = 5.0
MAX_BYTES = 4_000_000
ROUNDS = 5
EXPIRES_SOON_DAYS = 14
_SEE_LOG = "Look at the server's log."
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _OK = 401, 403, 404, 200
_GET_ACCESS = "Ask the operator for a token, put it into BRIDGEHEAD_TOKEN, and run this again."


class _Refused(Exception):
    """A request that was not answered as it should be; holds the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


async def examine(url: str, environment: Mapping[str, str]) -> list[Finding]:
    """Look at everything that a client would; the first thing that stops one is the last finding."""
    found: list[Finding] = []
    try:
        async with asyncio.timeout(4 * SECONDS):
            await _Session(url, environment.get("BRIDGEHEAD_TOKEN", ""), environment).examine(found)
    except _Refused as refused:
        found.append(refused.finding)
    except TimeoutError:
        found.append(Finding("time", "wrong", f"it took more than {4 * SECONDS:.0f} s", _SEE_LOG))
    return found


async def summarize(what: str, url: str, token: str) -> Finding:
    """Say in one finding whether a client reaches a server."""
    found: list[Finding] = []
    try:
        async with asyncio.timeout(SECONDS):
            await _Session(url, token, {}).examine(found, is_thorough=False)
    except _Refused as refused:
        return Finding(
            what, refused.finding.verdict, f"{url}: {refused.finding.text}", refused.finding.advice
        )
    except TimeoutError:
        return Finding(
            what, "wrong", f"{url} did not answer within {SECONDS:.0f} s", f"bridgehead doctor {url}"
        )
    return Finding(what, "right", f"{url} answers; {found[-1].text}")


class _Session:
    """A client's session with a server, from its first request to its last."""

    def __init__(self, url: str, token: str, environment: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        self._url = hide_credentials(url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path if parts.path not in ("", "/") else "/mcp"
        self._is_secure = parts.scheme == "https"
        self._pool = Pool(
            self._origin, connect_seconds=SECONDS, proxy=Proxies.from_environment(environment).choose(url)
        )
        self._headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ]
        self._public = list(self._headers)
        if token:
            self._headers.append(("Authorization", f"Bearer {token}"))
        self._has_token = bool(token)
        self._last_id = 0

    async def examine(self, found: list[Finding], *, is_thorough: bool = True) -> None:
        """Connect and list the tools; thoroughly, call one too and measure. Then leave."""
        try:
            if self._is_secure:
                found.append(await self._examine_certificate())
            await self._examine_sign_in(found)
            found.append(await self._connect())
            tools = (await self._ask("tools/list")).get("tools", [])
            found.append(Finding("tools", "right" if tools else "note", f"{len(tools)} tools"))
            if is_thorough:
                await self._call_one(tools, found)
                found.append(await self._measure())
            await self._leave()
        finally:
            await self._pool.close()

    async def _connect(self) -> Finding:
        server = await self._ask("initialize", _initialize())
        info, revision = server.get("serverInfo", {}), str(server.get("protocolVersion"))
        self._headers.append(("MCP-Protocol-Version", revision))
        return Finding("server", "right", f"{info.get('name')} {info.get('version')}, protocol {revision}")

    async def _examine_certificate(self) -> Finding:
        parts = urlsplit(self._origin)
        try:
            async with asyncio.timeout(SECONDS):
                _, writer = await asyncio.open_connection(
                    parts.hostname, parts.port or 443, ssl=ssl.create_default_context()
                )
        except (OSError, TimeoutError) as failure:
            advice = "Check the address, the port and the certificate chain."
            raise _Refused(Finding("TLS", "wrong", str(failure) or "no answer", advice)) from failure
        tls = writer.get_extra_info("ssl_object")
        writer.close()
        days = int((ssl.cert_time_to_seconds(tls.getpeercert()["notAfter"]) - time.time()) / 86_400)
        text = f"{tls.version()}, the certificate is valid for {days} more days"
        if days < EXPIRES_SOON_DAYS:
            return Finding("TLS", "note", text, "Renew it.")
        return Finding("TLS", "right", text)

    async def _examine_sign_in(self, found: list[Finding]) -> None:
        """See how the server answers a client without a token."""
        status, _, _ = await self._post("ping", None, self._public)
        if status != _UNAUTHORIZED:
            found.append(Finding("sign-in", "right", "no token is needed"))
            return
        metadata = await self._get(f"/.well-known/oauth-protected-resource{self._path}")
        servers = metadata.get("authorization_servers") or []
        ways = (
            f"OAuth at {', '.join(map(str, servers))}, or a token" if servers else "a token of the operator"
        )
        found.append(Finding("sign-in", "right", f"needs {ways}"))
        if not self._has_token:
            raise _Refused(
                Finding(
                    "token", "note", "BRIDGEHEAD_TOKEN is not set, so nothing more was tried", _GET_ACCESS
                )
            )

    async def _call_one(self, tools: list[dict[str, Any]], found: list[Finding]) -> None:
        fitting = [tool["name"] for tool in tools if _is_harmless(tool)]
        if not fitting:
            found.append(Finding("call", "note", "no tool reads without arguments, so none was called"))
            return
        began = time.monotonic()
        try:
            async with asyncio.timeout(SECONDS):
                result = await self._ask("tools/call", {"name": fitting[0], "arguments": {}})
        except TimeoutError:
            found.append(Finding("call", "note", f"{fitting[0]} did not answer within {SECONDS:.0f} s"))
            return
        text = f"{fitting[0]} answered in {(time.monotonic() - began) * 1000:.0f} ms"
        if result.get("isError"):
            said = " ".join(str(part.get("text", "")) for part in result.get("content", ()))
            found.append(Finding("call", "note", f"{text}, with an error: {said[:200]}"))
        else:
            found.append(Finding("call", "right", text))

    async def _measure(self) -> Finding:
        times = []
        for _ in range(ROUNDS):
            began = time.monotonic()
            await self._ask("ping")
            times.append((time.monotonic() - began) * 1000)
        return Finding("latency", "right", f"median {median(times):.1f} ms of {ROUNDS} pings")

    async def _leave(self) -> None:
        # A session that is not ended expires: a connection that breaks here is no finding.
        with suppress(ConnectFailed, ConnectionBroken):
            async with self._pool.request("DELETE", self._path, self._headers) as response:
                await response.read_body(MAX_BYTES)

    async def _ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result."""
        status, body, session = await self._post(method, params, self._headers)
        if session and method == "initialize":
            self._headers.append(("Mcp-Session-Id", session))
        if status == _OK:
            message = _decode(body)
            if isinstance(message.get("result"), dict):
                return dict(message["result"])
            said = message.get("error", {}).get("message", "no result")
            raise _Refused(Finding(method, "wrong", f"answered with an error: {said}", _SEE_LOG))
        raise _Refused(_explain(method, status, body, self._url))

    async def _post(
        self, method: str, params: Mapping[str, Any] | None, headers: list[tuple[str, str]]
    ) -> tuple[int, bytes, str | None]:
        self._last_id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        if params is not None:
            message["params"] = params
        try:
            async with self._pool.request(
                "POST", self._path, headers, msgspec.json.encode(message)
            ) as response:
                session = response.header("mcp-session-id")
                return response.status, await response.read_body(MAX_BYTES), session
        except (ConnectFailed, ConnectionBroken, BodyTooLarge) as failure:
            advice = "Check the address and that the server runs: bridgehead serve."
            raise _Refused(Finding("connection", "wrong", f"{self._url}: {failure}", advice)) from failure

    async def _get(self, path: str) -> dict[str, Any]:
        async with self._pool.request("GET", path, self._public) as response:
            body = await response.read_body(MAX_BYTES)
            return _decode(body) if response.status == _OK else {}


def _initialize() -> dict[str, Any]:
    about = {"name": "bridgehead doctor", "version": "1"}
    return {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": about}


def _is_harmless(tool: Mapping[str, Any]) -> bool:
    hints = tool.get("annotations") or {}
    needs = (tool.get("inputSchema") or {}).get("required")
    return bool(hints.get("readOnlyHint")) and not needs


def _decode(body: bytes) -> dict[str, Any]:
    """Read a message that came as JSON or as the last event of a stream."""
    text = body
    if not body.lstrip().startswith(b"{"):
        data = [line[5:] for line in body.splitlines() if line.startswith(b"data:") and line[5:].strip()]
        text = data[-1] if data else b""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _explain(method: str, status: int, body: bytes, url: str) -> Finding:
    """Say what a status means to whoever set the server up."""
    said = str(_decode(body).get("error", {}).get("message", "")) if b"error" in body else ""
    if status in (_UNAUTHORIZED, _FORBIDDEN):
        return Finding("token", "wrong", said or "the token is not accepted", _GET_ACCESS)
    if status == _NOT_FOUND:
        return Finding(
            method, "wrong", f"nothing is served at {url}", "The path ends in /mcp or /BRIDGE/mcp."
        )
    return Finding(method, "wrong", f"HTTP status {status}. {said}".strip(), _SEE_LOG)
