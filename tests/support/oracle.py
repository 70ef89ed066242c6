"""The oracle: owns what a valid message from the server is, as the official types of each revision have it.

`check` takes any message that the engine sent. It raises `AssertionError` with the place where the message
and the official types part, also for a field that they do not know. The official types judge every revision
of the handshake era by its newest; which field came with which revision is held by `tests.support.revisions`.
"""

from typing import Any

import mcp_types
from mcp_types import methods
from pydantic import BaseModel, TypeAdapter, ValidationError

from tests.support.revisions import undefined_fields

Json = dict[str, Any]

_ENVELOPES: dict[str, set[str]] = {
    "request": {"jsonrpc", "id", "method", "params"},
    "notification": {"jsonrpc", "method", "params"},
    "result": {"jsonrpc", "id", "result"},
    "error": {"jsonrpc", "id", "error"},
}
_ERROR_DATA: dict[int, type[BaseModel]] = {
    mcp_types.UNSUPPORTED_PROTOCOL_VERSION: mcp_types.UnsupportedProtocolVersionErrorData,
    mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY: mcp_types.MissingRequiredClientCapabilityErrorData,
}
_FIELD = {"type", "title", "description", "default"}
_FORM_FIELDS: dict[str, set[str]] = {
    "string": _FIELD | {"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"},
    "integer": _FIELD | {"minimum", "maximum"},
    "number": _FIELD | {"minimum", "maximum"},
    "boolean": _FIELD,
    "array": _FIELD | {"items", "minItems", "maxItems"},
}


def check(revision: str, method: str | None, message: Json) -> None:
    """Check one message from the server; `method` is that of the request it answers, if it answers one."""
    try:
        _check(revision, method, message)
    except (ValidationError, KeyError, ValueError) as problem:
        raise AssertionError(
            f"not valid in {revision} ({method or 'unasked'}): {message}\n{problem!r}"
        ) from problem


def _check(revision: str, method: str | None, message: Json) -> None:
    kind = _kind(message)
    assert message["jsonrpc"] == "2.0", message
    assert set(message) <= _ENVELOPES[kind], f"unknown members in the envelope of {message}"
    if kind == "request":
        methods.parse_server_request(message["method"], revision, message.get("params"))
        body = methods.SERVER_REQUESTS[message["method"], revision]
        _same(message, _dumped(body, message), revision, message["method"])
        _check_form(message)
    elif kind == "notification":
        methods.parse_server_notification(message["method"], revision, message.get("params"))
        body = methods.SERVER_NOTIFICATIONS[message["method"], revision]
        _same(message, _dumped(body, message), revision, message["method"])
    elif kind == "error":
        _check_error(message)
    else:
        _check_result(revision, method, message)


def _kind(message: Json) -> str:
    if "method" in message:
        return "request" if "id" in message else "notification"
    return "error" if "error" in message else "result"


def _check_form(question: Json) -> None:
    """Check the fields of a form, which the official types leave open: each is a plain value or a choice."""
    form = question.get("params", {}).get("requestedSchema", {})
    for name, field in form.get("properties", {}).items():
        assert field.get("type") in _FORM_FIELDS, f"field {name} of a form has no plain type: {field}"
        unknown = set(field) - _FORM_FIELDS[field["type"]]
        assert not unknown, f"field {name} of a form has {sorted(unknown)}"


def _check_error(message: Json) -> None:
    mcp_types.JSONRPCError.model_validate(message)
    error = message["error"]
    assert set(error) <= {"code", "message", "data"}, f"unknown members in {error}"
    assert "\n" not in error["message"], f"an error message is one line: {error}"
    if error["code"] in _ERROR_DATA:
        data = _ERROR_DATA[error["code"]].model_validate(error["data"])
        _contained(error["data"], data.model_dump(by_alias=True, mode="json"), "error.data")


def _check_result(revision: str, method: str | None, message: Json) -> None:
    assert method is not None, f"a result to nothing that was asked: {message}"
    mcp_types.JSONRPCResponse.model_validate(message)
    result = message["result"]
    methods.parse_server_result(method, revision, result)
    _same(result, methods.serialize_server_result(method, revision, result), revision, method)
    for question in result.get("inputRequests", {}).values():
        _check_form(question)


def _dumped(kind: Any, message: Json) -> Json:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    dumped: Json = adapter.dump_python(
        adapter.validate_python(message, by_name=False), by_alias=True, mode="json", exclude_none=True
    )
    return dumped


_OF_A_CONTRACT = {("tools/call", "metadata")}
"""Members of results that the published contract of a bridge has, and the protocol has not."""


def _same(sent: Json, official: Json, revision: str, method: str) -> None:
    """Nothing that was sent is unknown to the official types, or reads otherwise in them."""
    sent = {name: value for name, value in sent.items() if (method, name) not in _OF_A_CONTRACT}
    if method == "initialize":
        sent["capabilities"] = _without_extensions(sent["capabilities"])
    _contained(sent, official, "")
    later = undefined_fields(revision, method, sent)
    assert not later, f"{revision} does not define {', '.join(sorted(later))} of {method}"


def _without_extensions(capabilities: Json) -> Json:
    """Leave out what extensions themselves define for older handshakes, and the types have only since."""
    for name, settings in capabilities.get("extensions", {}).items():
        assert "/" in name, f"{name} is not the name of an extension"
        assert isinstance(settings, dict), f"{name} has no settings: {settings!r}"
    return {name: value for name, value in capabilities.items() if name != "extensions"}


def _contained(sent: Any, official: Any, path: str) -> None:
    if isinstance(sent, dict):
        assert isinstance(official, dict), f"{path}: {sent!r} became {official!r}"
        for name, value in sent.items():
            if value is not None or name in official:
                assert name in official, f"{path}.{name} is not a field of the official types"
                _contained(value, official[name], f"{path}.{name}")
    elif isinstance(sent, list):
        assert isinstance(official, list), f"{path}: {sent!r} became {official!r}"
        assert len(sent) == len(official), f"{path}: {sent!r} became {official!r}"
        for index, (ours, theirs) in enumerate(zip(sent, official, strict=True)):
            _contained(ours, theirs, f"{path}[{index}]")
    else:
        assert sent == official, f"{path}: {sent!r} became {official!r}"
        assert isinstance(sent, bool) == isinstance(official, bool), f"{path}: {sent!r} became {official!r}"
