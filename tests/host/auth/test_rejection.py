"""Host rejections: each says its status, its words, and the reason under which it is counted."""

import pytest

from bridgehead.host.auth.rejection import (
    HostRejection,
    challenge,
    reject_method,
    reject_path,
    reject_rate,
)


@pytest.mark.parametrize(
    ("rejection", "status", "reason", "header"),
    [
        (reject_path("/no"), 404, "path", None),
        (reject_method("PUT", b"GET"), 405, "method", (b"allow", b"GET")),
        (reject_rate("Slow down", 0.2, "limit"), 429, "limit", (b"retry-after", b"1")),
        (reject_rate("Slow down", 2.1, "limit"), 429, "limit", (b"retry-after", b"3")),
        (HostRejection(403, "No", "grant", headers=((b"a", b"b"),)), 403, "grant", (b"a", b"b")),
    ],
)
def test_a_rejection_has_a_status_a_reason_and_its_headers(
    rejection: HostRejection, status: int, reason: str, header: tuple[bytes, bytes] | None
) -> None:
    assert (rejection.response.status, rejection.reason) == (status, reason)
    assert header is None or header in rejection.response.headers


def test_a_long_path_is_not_repeated_in_whole() -> None:
    assert len(str(reject_path("/" + "x" * 10_000))) < 300


def test_a_challenge_can_be_sent_whatever_its_details_hold() -> None:
    assert challenge(', scope="a"') == (b"www-authenticate", b'Bearer realm="bridgehead", scope="a"')
    assert challenge("\u2028")[1].endswith(b"?")
