"""The interop bridge and another one behind a host: `python -m tests.interop.host_server --http PORT`.

Whether callers need a token is a matter of the environment, as it is for `bridgehead serve`.
"""

import os
import sys
from collections.abc import Collection, Mapping

from bridgehead.host.command import main
from bridgehead.runtime.manifest import FarSide, Manifest
from bridgehead.runtime.settings import Settings
from tests.interop.server import bridge
from tests.support.host_bridges import StandIns

INTEROP = Manifest(
    name="interop",
    title="Interop",
    summary="the interop bridge",
    description="The interop bridge.",
    settings=Settings,
    make=lambda _settings, _metrics: bridge,
    far_side=lambda _: FarSide(is_up=True, detail="There."),
)


def manifests(_wanted: Collection[str]) -> Mapping[str, Manifest]:
    return {"interop": INTEROP, **StandIns("other").manifests()}


if __name__ == "__main__":
    raise SystemExit(main(["--port", sys.argv[2]], os.environ, manifests))
