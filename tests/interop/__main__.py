"""Every official client on Node.js against the interop server and the bridges: `python -m tests.interop`.

Installs the clients on the first run, prints a line for each check, and exits with 1 if one failed.
"""

import argparse
import tempfile
from pathlib import Path

from tests.interop import (
    aoc,
    bitburner,
    bundles,
    command_line_clients,
    host,
    inspector,
    litellm,
    mercury,
    oauth,
    typescript,
)
from tests.interop.check import Check
from tests.interop.node import node
from tests.interop.server_process import serving


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="run only the checks with this in their name"
    )
    wanted = parser.parse_args().only
    program = node()
    with (
        tempfile.TemporaryDirectory() as home,
        serving("tests.interop.server", "--http") as address,
        bitburner.playing(Path(home)) as ports,
        mercury.upstreams(program, Path(home)) as upstreams,
        litellm.gateway(upstreams.simulated, Path(home)) as gateway,
        host.addresses(Path(home)) as hosts,
        oauth.guarded_host(program) as guarded,
    ):
        checks = [
            *typescript.checks(program, address),
            *inspector.checks(program, address, Path(home)),
            *aoc.checks(program, Path(home)),
            *bitburner.checks(program, Path(home), ports),
            *mercury.checks(program, upstreams, Path(home)),
            *litellm.checks(gateway, Path(home)),
            *bundles.checks(program, Path(home)),
            *host.checks(program, Path(home), hosts),
            *oauth.checks(guarded),
            *command_line_clients.checks(program, Path(home)),
        ]
        outcomes = [passes(check) for check in checks if wanted in check.name]
    failed = outcomes.count(False)
    print(f"{outcomes.count(True)} passed, {failed} failed")
    return 1 if failed or not outcomes else 0


def passes(check: Check) -> bool:
    failure = check.failure()
    if failure is None:
        print(f"ok      {check.name}", flush=True)
        return True
    print(f"failed  {check.name}: {failure}", flush=True)
    return False


if __name__ == "__main__":
    raise SystemExit(main())
