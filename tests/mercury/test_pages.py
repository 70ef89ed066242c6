"""The pages of the HTTP mode; over the wire they are tried in `test_served_over_http`."""

import json

from bridgehead.mercury.pages import make_pages
from bridgehead.runtime.manifest import FarSide
from bridgehead.runtime.metrics import Metrics


def test_an_api_that_is_down_makes_the_server_degraded_and_not_unready() -> None:
    pages = make_pages(lambda: FarSide(is_up=False, detail="The API keeps failing."), Metrics())

    ready = pages["/readyz"]()

    assert (ready.status, json.loads(ready.body)["status"]) == (200, "degraded")
    assert json.loads(ready.body)["bridges"]["mercury"]["says"] == "The API keeps failing."
    assert pages["/health"]().status == pages["/healthz"]().status == 200
