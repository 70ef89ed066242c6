"""The oracle: it must refuse what is wrong, or its silence would mean nothing."""

from typing import Any

import pytest

from tests.support import oracle

TEXT = {"type": "text", "text": "x"}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


def result(body: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": body}


@pytest.mark.parametrize(
    ("revision", "method", "message"),
    [
        (
            "2025-11-25",
            "tools/call",
            result({"content": [TEXT], "structuredContent": {"a": None, "b": [1, 2.0]}}),
        ),
        ("2024-11-05", "ping", result({})),
        (
            "2026-07-28",
            "tools/list",
            result({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "public"}),
        ),
        ("2025-11-25", None, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}}),
        ("2025-11-25", None, {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
        ("2025-11-25", None, {"jsonrpc": "2.0", "id": "a", "method": "roots/list", "params": {}}),
    ],
)
def test_a_valid_message_passes(revision: str, method: str | None, message: dict[str, Any]) -> None:
    oracle.check(revision, method, message)


@pytest.mark.parametrize(
    ("revision", "method", "message", "reason"),
    [
        ("2025-11-25", "tools/call", result({}), "content"),
        ("2025-11-25", "tools/call", result({"content": [TEXT], "extra": 1}), "extra"),
        ("2025-11-25", "tools/call", result({"content": [{**TEXT, "extra": 1}]}), "extra"),
        ("2025-11-25", "tools/call", {**result({"content": []}), "extra": 1}, "envelope"),
        ("2025-11-25", "tools/call", result({"content": [], "isError": "no"}), "isError"),
        ("2025-03-26", "tools/call", result({"content": [], "structuredContent": {}}), "structuredContent"),
        (
            "2024-11-05",
            "tools/call",
            result({"content": [{"type": "audio", "data": "", "mimeType": "a/b"}]}),
            "audio",
        ),
        ("2025-06-18", "tools/list", result({"tools": [{**TOOL, "icons": []}]}), "icons"),
        ("2024-11-05", "tools/list", result({"tools": [{**TOOL, "annotations": {}}]}), "annotations"),
        ("2025-11-25", "ping", result({"resultType": "complete"}), "resultType"),
        ("2026-07-28", "tools/list", result({"tools": []}), "resultType"),
        ("2026-07-28", "ping", result({}), "ping"),
        ("2025-11-25", "server/discover", result({}), "server/discover"),
        ("2025-11-25", None, result({}), "nothing that was asked"),
        ("2025-11-25", None, {"jsonrpc": "2.0", "method": "notifications/nonsense"}, "nonsense"),
        (
            "2025-03-26",
            None,
            {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}},
            "elicitation",
        ),
        ("2026-07-28", None, {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, "roots/list"),
        ("2025-11-25", None, {"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "y"}}, "code"),
        (
            "2025-11-25",
            None,
            {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "y", "z": 1}},
            "unknown",
        ),
        ("2026-07-28", None, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "y"}}, "data"),
        (
            "2024-11-05",
            None,
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": 1, "progress": 1, "message": "m"},
            },
            "message",
        ),
    ],
)
def test_a_message_that_is_wrong_in_its_revision_is_refused(
    revision: str, method: str | None, message: dict[str, Any], reason: str
) -> None:
    with pytest.raises(AssertionError, match=reason):
        oracle.check(revision, method, message)
