"""`bridgehead serve` with stand-in bridges, as a process: `python -m tests.support.host_process`.

`REAL_BRIDGES` names bridges of ours that are served in their place.
"""

import os
import sys

from bridgehead.host.command import main
from bridgehead.host.registry import installed
from bridgehead.runtime import env_file
from bridgehead.runtime.errors import BridgeError
from tests.support import constants
from tests.support.host_bridges import StandIns

if __name__ == "__main__":
    constants.apply()
    stand_ins = StandIns("alpha", "beta", "gamma", "slow")
    stand_ins.alone["gamma"] = "There is one gamma in the world."
    try:
        environment = env_file.merge(os.environ, env_file.read())
        real = environment.get("REAL_BRIDGES", "")
        manifests = (lambda _: installed(real.split(","))) if real else stand_ins.manifests
        raise SystemExit(main(sys.argv[1:], environment, manifests))
    except BridgeError as error:
        sys.stderr.write(f"bridgehead serve: {error}\n")
        raise SystemExit(2) from None
