"""Deployed server: checks the server at a URL as a client sees it: TLS, sign-in, tools, a call, latency.

Nothing is changed on the server: the only tool that is called is marked read-only and needs no arguments.
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
"""The revision that most clients ask for today."""
_HELLO = {
    "protocolVersion": REVISION,
    "capabilities": {},
    "clientInfo": {"name": "bridgehead doctor", "version": "1"},
}
SECONDS = 5.0
MAX_BYTES = 4_000_000
ROUNDS = 5
EXPIRES_SOON_DAYS = 14
_SEE_LOG = "Look at the server's log."
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _OK = 401, 403, 404, 200
_GET_ACCESS = "Ask the operator for a token, put it into BRIDGEHEAD_TOKEN, and run this again."


class _Refused(Exception):
    """A request failed, which ends the examination; `finding` gives the reason."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


async def examine(url: str, environment: Mapping[str, str]) -> list[Finding]:
    """Check everything a client needs; the first failure is the last finding."""
    findings: list[Finding] = []
    try:
        async with asyncio.timeout(4 * SECONDS):
            await _Session(url, environment.get("BRIDGEHEAD_TOKEN", ""), environment).examine(findings)
    except _Refused as refused:
        # "wrong" even for a note: the user asks whether this server works, and notes still end in "everything
        # works".
        findings.append(msgspec.structs.replace(refused.finding, verdict="wrong"))
    except TimeoutError:
        findings.append(Finding("time", "wrong", f"it took more than {4 * SECONDS:.0f} s", _SEE_LOG))
    return findings


async def summarize(what: str, url: str, token: str) -> Finding:
    """Say in one finding whether a client reaches a server; call no tool."""
    findings: list[Finding] = []
    try:
        async with asyncio.timeout(SECONDS):
            await _Session(url, token, {}).examine(findings, is_thorough=False)
    except _Refused as refused:
        return Finding(
            what, refused.finding.verdict, f"{url}: {refused.finding.text}", refused.finding.advice
        )
    except TimeoutError:
        return Finding(
            what, "wrong", f"{url} did not answer within {SECONDS:.0f} s", f"Run `bridgehead doctor {url}`."
        )
    return Finding(what, "right", f"{url} answers; {findings[-1].text}")


class _Session:
    """A client's session with a server, from `initialize` to DELETE."""

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

    async def examine(self, findings: list[Finding], *, is_thorough: bool = True) -> None:
        """Connect, list the tools and end the session; if thorough, also call a tool and measure latency."""
        try:
            if self._is_secure:
                findings.append(await self._examine_certificate())
            await self._examine_sign_in(findings)
            server = await self._ask("initialize", _HELLO)
            info, revision = server.get("serverInfo", {}), str(server.get("protocolVersion"))
            # Clients must repeat the negotiated revision in every later request (since 2025-06-18).
            self._headers.append(("MCP-Protocol-Version", revision))
            findings.append(
                Finding("server", "right", f"{info.get('name')} {info.get('version')}, protocol {revision}")
            )
            tools = (await self._ask("tools/list")).get("tools", [])
            findings.append(Finding("tools", "right" if tools else "note", f"{len(tools)} tools"))
            if is_thorough:
                findings.append(await self._try_tool(tools))
                milliseconds = []
                for _ in range(ROUNDS):
                    began = time.monotonic()
                    await self._ask("ping")
                    milliseconds.append((time.monotonic() - began) * 1000)
                text = f"median {median(milliseconds):.1f} ms of {ROUNDS} pings"
                findings.append(Finding("latency", "right", text))
            await self._end_session(self._headers)
        finally:
            await self._pool.close()

    async def _end_session(self, headers: list[tuple[str, str]]) -> None:
        # A session that is not ended expires, so a connection that breaks here is not reported.
        with suppress(ConnectFailed, ConnectionBroken):
            async with self._pool.request("DELETE", self._path, headers) as response:
                await response.read_body(MAX_BYTES)

    async def _examine_certificate(self) -> Finding:
        parts = urlsplit(self._origin)
        try:
            async with asyncio.timeout(SECONDS):
                _, writer = await asyncio.open_connection(
                    parts.hostname, parts.port or 443, ssl=ssl.create_default_context()
                )
        except (OSError, TimeoutError) as failure:
            advice, text = (
                "Check the address, the port and the certificate chain.",
                str(failure) or "no answer",
            )
            # OpenSSL's words for an answer that is not TLS, such as that of an http server.
            if isinstance(failure, ssl.SSLError) and failure.reason == "WRONG_VERSION_NUMBER":
                advice, text = "Use http://, or the port that serves https.", "the server does not speak TLS"
            raise _Refused(Finding("TLS", "wrong", text, advice)) from failure
        tls = writer.get_extra_info("ssl_object")
        writer.close()
        days = int((ssl.cert_time_to_seconds(tls.getpeercert()["notAfter"]) - time.time()) / 86_400)
        text = f"{tls.version()}, the certificate is valid for {days} more days"
        if days < EXPIRES_SOON_DAYS:
            return Finding("TLS", "note", text, "Renew it.")
        return Finding("TLS", "right", text)

    async def _examine_sign_in(self, findings: list[Finding]) -> None:
        """Begin without a token, as a new client does, to learn how to sign in."""
        status, _, session = await self._post("initialize", _HELLO, self._public)
        if session:
            await self._end_session([*self._public, ("Mcp-Session-Id", session)])
        if status != _UNAUTHORIZED:
            findings.append(Finding("sign-in", "right", "no token is needed"))
            return
        # RFC 9728, section 3.1: the path of the resource follows the well-known path.
        well_known = f"/.well-known/oauth-protected-resource{self._path}"
        async with self._pool.request("GET", well_known, self._public) as response:
            body = await response.read_body(MAX_BYTES)
            metadata = _decode(body) if response.status == _OK else {}
        servers = metadata.get("authorization_servers") or []
        ways = (
            f"OAuth at {', '.join(map(str, servers))}, or a token" if servers else "a token of the operator"
        )
        findings.append(Finding("sign-in", "right", f"needs {ways}"))
        if not self._has_token:
            raise _Refused(
                Finding(
                    "token", "note", "BRIDGEHEAD_TOKEN is not set, so nothing more was tried", _GET_ACCESS
                )
            )

    async def _try_tool(self, tools: list[dict[str, Any]]) -> Finding:
        """Call the first tool that is marked read-only and needs no arguments."""
        harmless = [
            tool["name"]
            for tool in tools
            if (tool.get("annotations") or {}).get("readOnlyHint")
            and not (tool.get("inputSchema") or {}).get("required")
        ]
        if not harmless:
            return Finding("call", "note", "no tool reads without arguments, so none was called")
        began = time.monotonic()
        try:
            async with asyncio.timeout(SECONDS):
                result = await self._ask("tools/call", {"name": harmless[0], "arguments": {}})
        except TimeoutError:
            return Finding("call", "note", f"{harmless[0]} did not answer within {SECONDS:.0f} s")
        text = f"{harmless[0]} answered in {(time.monotonic() - began) * 1000:.0f} ms"
        if result.get("isError"):
            # Only a note: the server works, and the cause may be a far side or the caller's key.
            error = " ".join(str(part.get("text", "")) for part in result.get("content", ()))
            return Finding("call", "note", f"{text}, with an error: {error[:200]}")
        return Finding("call", "right", text)

    async def _ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result."""
        status, body, session = await self._post(method, params, self._headers)
        if session and method == "initialize":
            self._headers.append(("Mcp-Session-Id", session))
        message = _decode(body)
        if status == _OK and isinstance(message.get("result"), dict):
            return dict(message["result"])
        error = message.get("error")
        error = error.get("message") if isinstance(error, dict) else error  # OAuth's errors are strings
        if status == _OK:
            finding = Finding(method, "wrong", f"answered with an error: {error or 'no result'}", _SEE_LOG)
        elif status in (_UNAUTHORIZED, _FORBIDDEN):
            finding = Finding("token", "wrong", str(error or "the token is not accepted"), _GET_ACCESS)
        elif status == _NOT_FOUND:
            advice = "Check the path: it ends in /mcp or /BRIDGE/mcp, for a bridge that is served there."
            finding = Finding(method, "wrong", f"nothing is served at {self._url}", advice)
        else:
            finding = Finding(method, "wrong", f"HTTP status {status}. {error or ''}".strip(), _SEE_LOG)
        raise _Refused(finding)

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
            advice = "Check the address, or start the server with `bridgehead serve`."
            raise _Refused(Finding("connection", "wrong", str(failure), advice)) from failure


def _decode(body: bytes) -> dict[str, Any]:
    """Decode a message sent as JSON or as the last event of an SSE stream; empty if it is no object."""
    text = body
    if not body.lstrip().startswith(b"{"):
        data = [line[5:] for line in body.split(b"\n") if line.startswith(b"data:") and line[5:].strip()]
        text = data[-1] if data else b""
    try:
        message = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return message if isinstance(message, dict) else {}
