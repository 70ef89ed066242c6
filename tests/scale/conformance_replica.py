"""One replica of the conformance server: `python -m tests.conformance.replica --port PORT`, a real host."""

import importlib
import os
import sys
from collections.abc import Collection, Mapping

from bridgehead.host.command import main
from bridgehead.runtime.manifest import FarSide, Manifest
from bridgehead.runtime.settings import Settings
from tests.conformance.bridge import bridge
from tests.conformance.server import PARTS

NAME = "conformance"


class NoSettings(Settings):
    """Nothing can be set."""


def manifests(_names: Collection[str] = ()) -> Mapping[str, Manifest]:
    for part in PARTS:
        importlib.import_module(f"tests.conformance.{part}")
    return {
        NAME: Manifest(
            name=NAME,
            title="Conformance",
            summary="what the suite asks for",
            description="What the suite asks for.",
            settings=NoSettings,
            make=lambda _settings, _metrics: bridge,
            far_side=lambda _state: FarSide(is_up=True, detail="There is none."),
        )
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], os.environ, manifests))
