"""Parameters: unknown members are ignored, wrong ones refused with their path."""

from typing import Any

import msgspec
import pytest

from bridgehead.mcp.calls.params import (
    META_PREFIX,
    CallToolParams,
    CancelledParams,
    CompleteParams,
    InitializeParams,
    ListenParams,
    Params,
    RequestMeta,
)


def test_what_is_unknown_is_ignored() -> None:
    params = msgspec.convert({"name": "echo", "colour": "red", "_meta": {"x": 1}}, CallToolParams)

    assert (params.name, bytes(params.arguments)) == ("echo", b"{}")
    assert isinstance(params.meta, RequestMeta)


def test_the_members_of_the_meta_have_the_names_of_the_protocol() -> None:
    given = {
        "progressToken": "p",
        META_PREFIX + "protocolVersion": "2026-07-28",
        META_PREFIX + "clientCapabilities": {},
        META_PREFIX + "logLevel": "debug",
        "traceparent": "00-1-2-01",
    }
    meta = msgspec.convert(given, RequestMeta)

    assert msgspec.to_builtins(meta) == given


def test_a_handshake_may_say_nothing() -> None:
    assert msgspec.convert({}, InitializeParams) == InitializeParams()


@pytest.mark.parametrize(
    ("kind", "given", "path"),
    [
        (CallToolParams, {}, "name"),
        (CallToolParams, {"name": 5}, r"\$\.name"),
        (CancelledParams, {"requestId": 1.5}, "requestId"),
        (CompleteParams, {"ref": {"type": "ref/nothing"}, "argument": {}}, r"\$\.ref\.type"),
        (ListenParams, {"notifications": {"toolsListChanged": 1}}, "toolsListChanged"),
        (Params, {"_meta": 5}, "_meta"),
    ],
)
def test_what_is_wrong_is_refused_with_its_path(kind: type[Params], given: Any, path: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=path):
        msgspec.convert(given, kind)
