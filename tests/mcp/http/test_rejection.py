"""Rejections: the status and the JSON-RPC error say the same."""

import json

import pytest

from bridgehead.mcp import INVALID_PARAMS, OVERLOADED, ProtocolError
from bridgehead.mcp.errors import HEADER_MISMATCH, METHOD_NOT_FOUND, MalformedRequest
from bridgehead.mcp.http.rejection import (
    Rejection,
    reject_busy,
    reject_method,
    reject_session,
    status_of,
)


@pytest.mark.parametrize(
    ("failure", "handshake", "stateless"),
    [
        (ProtocolError(METHOD_NOT_FOUND, "x"), 200, 404),
        (ProtocolError(HEADER_MISMATCH, "x"), 200, 400),
        (ProtocolError(INVALID_PARAMS, "x"), 200, 200),
        (ProtocolError(OVERLOADED, "x"), 503, 503),
        (MalformedRequest(INVALID_PARAMS, "x"), 400, 400),
    ],
)
def test_an_error_has_a_status_in_each_era(failure: ProtocolError, handshake: int, stateless: int) -> None:
    assert status_of(failure, stateless=False) == handshake
    assert status_of(failure, stateless=True) == stateless


@pytest.mark.parametrize(
    ("rejection", "status", "header"),
    [
        (reject_busy(), 503, (b"retry-after", b"1")),
        (reject_session(), 503, (b"retry-after", b"30")),
        (reject_method("No.", b"GET"), 405, (b"allow", b"GET")),
        (Rejection(418, "No."), 418, (b"content-type", b"application/json")),
    ],
)
def test_a_rejection_is_a_response_with_the_error_in_it(
    rejection: Rejection, status: int, header: tuple[bytes, bytes]
) -> None:
    response = rejection.response
    told = json.loads(response.body)

    assert response.status == status
    assert header in response.headers
    assert (told["id"], told["error"]["message"]) == (None, str(rejection))
    assert told["error"]["code"] == rejection.error.code
