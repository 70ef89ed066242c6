"""Mirrored headers: in the stateless era, headers repeat parts of the body and must agree with it.

Intermediaries route by these headers, so a request whose headers and body differ is refused with
HeaderMismatch before any of it runs.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ..bridge import Bridge
from ..calls.params import CallToolParams, GetPromptParams, ReadResourceParams, TaskParams
from ..errors import HEADER_MISMATCH, ProtocolError
from ..features.tools import TASKS_EXTENSION
from ..jsonrpc import UNDECODABLE
from ..methods.request import Request

_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")
_SENTINEL, _END = "=?base64?", "?="


def check_mirrored(request: Request, headers: dict[bytes, bytes], bridge: Bridge[Any]) -> None:
    """Raise HeaderMismatch unless every mirrored header equals its part of the body."""
    params = request.params
    declared = UNSET if params.meta is None else params.meta.protocol_version
    if not isinstance(declared, UnsetType):  # a missing version in the body has its own, clearer error
        _compare("MCP-Protocol-Version", headers.get(b"mcp-protocol-version"), declared, is_plain=True)
    _compare("Mcp-Method", headers.get(b"mcp-method"), request.name, is_plain=True)
    if isinstance(params, CallToolParams):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.name)
        _check_parameters(params, headers, bridge)
    elif isinstance(params, GetPromptParams):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.name)
    elif isinstance(params, ReadResourceParams):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.uri)
    elif isinstance(params, TaskParams) and bridge.has_tasks:
        # A client without the extension gets the error about that instead, which the method raises.
        capabilities = UNSET if params.meta is None else params.meta.client_capabilities
        extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
        if isinstance(extensions, dict) and TASKS_EXTENSION in extensions:
            _compare("Mcp-Name", headers.get(b"mcp-name"), params.task_id)


def _check_parameters(params: CallToolParams, headers: dict[bytes, bytes], bridge: Bridge[Any]) -> None:
    tool = bridge.tools.get(params.name)
    if tool is None or not tool.headers:
        return
    try:
        arguments = msgspec.json.decode(params.arguments)
    except UNDECODABLE:
        return  # the tool's own check says what is wrong
    for name, path in tool.headers.items():
        value = arguments
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        header = headers.get(name.encode())
        if value is None:
            if header is not None:
                raise _mismatch(f"{name} is set, but the arguments have no such value")
        elif isinstance(value, bool):
            _compare(name, header, "true" if value else "false")
        elif isinstance(value, int):
            # Compared as numbers, since a client may write 1 as 1.0.
            if header is None:
                raise _mismatch(f"{name} is missing")
            text = _decode(name, header)
            if _NUMBER.fullmatch(text) is None or float(text) != value:
                raise _mismatch(f"{name} header value {text!r} does not match body value {value}")
        else:
            _compare(name, header, str(value))


def _compare(name: str, header: bytes | None, expected: str, *, is_plain: bool = False) -> None:
    """Compare a header, which may be base64 in `=?base64?…?=` unless it `is_plain`."""
    if header is None:
        raise _mismatch(f"{name} is missing")
    # Fast path: equal bytes that cannot mean anything else.
    if header == expected.encode() and header.isascii() and not header.startswith(b"=?"):
        return
    text = header.decode("latin-1") if is_plain else _decode(name, header)
    if text != expected:
        raise _mismatch(f"{name} header value {text!r} does not match body value {expected!r}")


def _decode(name: str, header: bytes) -> str:
    text = header.strip().decode("latin-1")
    if text.startswith(_SENTINEL) and text.endswith(_END):
        try:
            return base64.b64decode(text[len(_SENTINEL) : -len(_END)], validate=True).decode()
        except (binascii.Error, ValueError):
            raise _mismatch(f"{name} is not valid base64") from None
    if not text.replace("\t", " ").isprintable() or not text.isascii():
        raise _mismatch(f"{name} contains invalid characters")
    return text


def _mismatch(detail: str) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, f"Header mismatch: {detail}")
