"""Accounts: what the host itself counts, beside what each bridge counts of itself."""

from __future__ import annotations

from bridgehead.runtime.metrics import Metrics

_MOST_CLIENTS = 1000
OTHERS = "(others)"
_STATUS = {status: str(status) for status in range(100, 600)}


class Accounts:
    """The host's metrics."""

    def __init__(self) -> None:
        self.metrics = metrics = Metrics()
        self.in_flight = 0
        """Requests whose answer takes waiting."""
        self._requests = metrics.counter(
            "bridgehead_http_requests_total", "HTTP requests that were answered.", "route", "status"
        )
        self._seconds = metrics.histogram(
            "bridgehead_http_request_seconds", "How long an HTTP request took, streams included.", "route"
        )
        self._clients = metrics.counter(
            "bridgehead_client_requests_total", "Requests by the name of the caller.", "client"
        )
        self.refusals = metrics.counter(
            "bridgehead_refusals_total",
            "Requests and connections that were turned away before a bridge saw them.",
            "reason",
        )
        self.auth_failures = metrics.counter(
            "bridgehead_auth_failures_total", "Requests without a good token.", "reason"
        )
        metrics.gauge(
            "bridgehead_http_in_flight",
            "HTTP requests being served that take waiting.",
            lambda: {(): float(self.in_flight)},
        )

    def answered(self, route: str, status: int, seconds: float, client: str | None) -> None:
        """Count one request that is over."""
        self._requests.add(route, _STATUS[status])
        self._seconds.observe(seconds, route)
        if client is not None:
            known = self._clients.values
            self._clients.add(client if len(known) < _MOST_CLIENTS or (client,) in known else OTHERS)
