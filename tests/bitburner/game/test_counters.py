"""Counters: all of them are there, at zero, before a game has come."""

from bridgehead.bitburner.game.counters import GameCounters
from bridgehead.runtime.metrics import Metrics


def test_everything_is_counted_from_zero() -> None:
    metrics = Metrics()
    counters = GameCounters(metrics)

    assert {one.name for one in metrics.all} == {
        "rpc_timeouts_total",
        "ws_reconnects_total",
        "bridgehead_bitburner_replies_ignored_total",
        "bridgehead_bitburner_game_connected",
    }
    assert counters.timeouts.values == counters.reconnects.values == {(): 0}
    assert counters.ignored.values == {}
    assert not counters.is_connected
