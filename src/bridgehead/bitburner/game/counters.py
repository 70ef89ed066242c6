"""Counters: the metrics of the connection to the game, exported as 0 from the start.

Apart from `connection`, which imports the WebSocket library: metrics exist before the first client connects.
"""

from __future__ import annotations

from bridgehead.runtime.metrics import Metrics


class GameCounters:
    """The metrics of one bridge's connection."""

    def __init__(self, metrics: Metrics) -> None:
        self.timeouts = metrics.counter(
            "rpc_timeouts_total", "Exchanges that the game did not answer in time."
        )
        self.reconnects = metrics.counter("ws_reconnects_total", "Games that connected after an earlier one.")
        self.ignored = metrics.counter(
            "bridgehead_bitburner_replies_ignored_total", "Replies that fitted no call.", "why"
        )
        self.is_connected = False
        metrics.gauge(
            "bridgehead_bitburner_game_connected",
            "Whether a game is connected.",
            lambda: {(): float(self.is_connected)},
        )
        # Export 0 from the start: a rate over a series that begins at 1 would miss the first event.
        for counter in (self.timeouts, self.reconnects):
            counter.add(by=0)
