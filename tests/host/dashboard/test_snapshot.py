"""Snapshot: the state of a process as plain data."""

from bridgehead.host.dashboard.snapshot import make_handle


def test_the_handle_of_a_session_does_not_give_its_id_away() -> None:
    assert make_handle("0~secret") == make_handle("0~secret")
    assert "secret" not in make_handle("0~secret")
    assert make_handle("0~secret").isalnum()
