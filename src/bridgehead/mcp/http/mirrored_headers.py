"""Mirrored headers: in the stateless era, headers repeat parts of the body and must say the same.

Intermediaries route by these headers, so a request whose headers and body disagree is refused with
HeaderMismatch, before anything of it runs.
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
    """Compare everything that is mirrored."""
    params = request.params
    declared = UNSET if params.meta is None else params.meta.protocol_version
    if not isinstance(declared, UnsetType):  # else the body itself is at fault, and is told so
        _compare("MCP-Protocol-Version", headers.get(b"mcp-protocol-version"), declared, is_plain=True)
    _compare("Mcp-Method", headers.get(b"mcp-method"), request.name, is_plain=True)
    if isinstance(params, CallToolParams):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.name)
        _check_parameters(params, headers, bridge)
    elif isinstance(params, GetPromptParams):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.name)
    elif isinstance(params, ReadResourceParams):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.uri)
    elif isinstance(params, TaskParams) and bridge.has_tasks and _declares_tasks(params):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.task_id)


def _declares_tasks(params: TaskParams) -> bool:
    """Tell whether a client may ask of tasks; one that may not is told that first."""
    declared = UNSET if params.meta is None else params.meta.client_capabilities
    extensions = declared.get("extensions") if isinstance(declared, dict) else None
    return isinstance(extensions, dict) and TASKS_EXTENSION in extensions


def _check_parameters(params: CallToolParams, headers: dict[bytes, bytes], bridge: Bridge[Any]) -> None:
    tool = bridge.tools.get(params.name)
    if tool is None or not tool.headers:
        return
    try:
        arguments = msgspec.json.decode(params.arguments)
    except UNDECODABLE:
        return  # the tool's own check says what is wrong
    for name, path in tool.headers.items():
        value = _at(arguments, path)
        header = headers.get(name.encode())
        if value is None:
            if header is not None:
                raise _mismatch(f"{name} is set, but the arguments have no such value")
        elif isinstance(value, bool):
            _compare(name, header, "true" if value else "false")
        elif isinstance(value, int):
            _compare_number(name, header, value)
        else:
            _compare(name, header, str(value))


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    value = arguments
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _compare(name: str, header: bytes | None, expected: str, *, is_plain: bool = False) -> None:
    """Compare a header, which may be written in base64 unless it is one of those that are always plain."""
    if header is None:
        raise _mismatch(f"{name} is missing")
    if header == expected.encode() and header.isascii() and not header.startswith(b"=?"):
        return
    found = header.decode("latin-1") if is_plain else _decoded(name, header)
    if found != expected:
        raise _mismatch(f"{name} header value {found!r} does not match body value {expected!r}")


def _compare_number(name: str, header: bytes | None, expected: int) -> None:
    if header is None:
        raise _mismatch(f"{name} is missing")
    found = _decoded(name, header)
    if _NUMBER.fullmatch(found) is None or float(found) != expected:
        raise _mismatch(f"{name} header value {found!r} does not match body value {expected}")


def _decoded(name: str, header: bytes) -> str:
    text = header.strip().decode("latin-1")
    if text.startswith(_SENTINEL) and text.endswith(_END):
        try:
            return base64.b64decode(text[len(_SENTINEL) : -len(_END)], validate=True).decode()
        except (binascii.Error, ValueError):
            raise _mismatch(f"{name} is not valid base64") from None
    if not text.replace("\t", " ").isprintable() or not text.isascii():
        raise _mismatch(f"{name} contains invalid characters")
    return text


def _mismatch(what: str) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, f"Header mismatch: {what}")
