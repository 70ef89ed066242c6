"""The interop bridge and another one behind a host: `python -m tests.interop.host_server --http PORT`.

Whether callers need a token is a matter of the environment, as it is for `bridgehead serve`.
"""

import os
import sys
from collections.abc import Collection, Mapping

from bridgehead.host.command import main
from bridgehead.runtime.hosting import Factory, FarSide, Hosted
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.settings import Settings
from tests.interop.server import bridge
from tests.support.host_bridges import StandIns


def hosted(environment: Mapping[str, str], metrics: Metrics) -> Hosted:
    """Give the interop bridge as a host takes it."""
    return Hosted(bridge, Settings(environment), metrics, lambda _: FarSide(is_there=True, says="There."))


def factories(_wanted: Collection[str]) -> Mapping[str, Factory]:
    return {"interop": hosted, **StandIns("other").factories()}


if __name__ == "__main__":
    raise SystemExit(main(["--port", sys.argv[2]], os.environ, factories))
