"""Discovery: the metadata of an authorisation server, and the HTTP requests to it.

Tries both well-known addresses (RFC 8414 and OpenID Connect Discovery), and accepts only metadata that name
the configured issuer. Follows no redirect.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from bridgehead.runtime import http
from bridgehead.runtime.errors import BridgeError, Unavailable
from bridgehead.runtime.http import Fetched, Proxies

from ..settings import SECURE_URL

Fetch = Callable[[str], Awaitable[bytes]]

FETCH_SECONDS = 5.0
_MAX_BYTES = 1_000_000
_OK = 200
_PRINTABLE = re.compile(r"[\x21-\x7e]{1,2000}")


class Metadata(Struct, frozen=True):
    """The metadata that we use, under their names in RFC 8414."""

    jwks_uri: str
    authorization_endpoint: str
    token_endpoint: str
    scopes_supported: frozenset[str]
    token_endpoint_auth_methods_supported: frozenset[str]
    authorization_response_iss_parameter_supported: bool


async def discover(issuer: str, fetch: Fetch, needed: Sequence[str]) -> Metadata:
    """Fetch an issuer's metadata; the fields in `needed` must be there. Raises Unavailable."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    failure: Exception = Unavailable("The issuer publishes no metadata.")
    # RFC 8414, section 3.1, inserts the well-known path before the issuer's own; OpenID Connect appends it.
    for url in (
        f"{base}/.well-known/oauth-authorization-server{path}",
        f"{base}{path}/.well-known/openid-configuration",
    ):
        try:
            document = read_object(await fetch(url))
        except (BridgeError, msgspec.MsgspecError) as problem:
            failure = problem
            continue
        # RFC 8414, section 3.3: metadata that name another issuer must not be used.
        if document.get("issuer") == issuer and all(isinstance(document.get(name), str) for name in needed):
            return Metadata(
                str(document.get("jwks_uri", "")),
                str(document.get("authorization_endpoint", "")),
                str(document.get("token_endpoint", "")),
                _read_words(document.get("scopes_supported")),
                _read_words(document.get("token_endpoint_auth_methods_supported")),
                document.get("authorization_response_iss_parameter_supported") is True,
            )
        failure = Unavailable(f"{url} is not about {issuer}, or names no {' and '.join(needed)}.")
    raise failure


def _read_words(value: Any) -> frozenset[str]:
    return (
        frozenset(word for word in value if isinstance(word, str)) if isinstance(value, list) else frozenset()
    )


def read_object(data: bytes) -> dict[str, Any]:
    """Read a JSON object; raises MsgspecError."""
    return msgspec.json.decode(data, type=dict[str, Any])


def is_secure(url: str) -> bool:
    """Tell whether a browser or a secret may be sent to an address: https, or a server on this machine."""
    try:
        SECURE_URL.parse(url)
    except ValueError:
        return False
    return _PRINTABLE.fullmatch(url) is not None  # a line break would end the Location header


async def fetch(url: str, proxies: Proxies) -> bytes:
    """Fetch a small document, through a proxy if one is configured. Raises Unavailable unless it is 200."""
    if not url.startswith(("https://", "http://")):  # the address comes from the issuer: never file://
        raise Unavailable(f"{url} is not a web address.")
    response = await _send(url, proxies, {})
    if response.status != _OK:
        raise Unavailable(f"{url} answered with status {response.status}.")
    return response.body


async def post(url: str, form: dict[str, str], headers: dict[str, str], proxies: Proxies) -> Fetched:
    """Post a form; return the response, whatever its status. Raises Unavailable."""
    own = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    return await _send(url, proxies, own, urlencode(form).encode())


async def _send(url: str, proxies: Proxies, headers: dict[str, str], body: bytes | None = None) -> Fetched:
    accept = {"Accept": "application/json", **headers}
    try:
        return await http.fetch(
            url,
            seconds=FETCH_SECONDS,
            max_bytes=_MAX_BYTES,
            headers=accept.items(),
            proxy=proxies.choose(url),
            body=body,
        )
    except (http.BodyTooLarge, http.ConnectFailed, http.ConnectionBroken, TimeoutError) as failure:
        raise Unavailable(f"{url} cannot be fetched: {str(failure) or 'it took too long'}.") from failure
