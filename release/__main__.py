"""`python -m release dist` builds, `python -m release smoke` builds and tries what was built."""

import argparse
import tempfile
import time
from pathlib import Path

from release import images, published
from release.dist import ROOT, build
from release.smoke import smoke

TRIED_ADDRESS = "https://github.example/bridgehead/bridgehead"


def main() -> int:
    """Do what was asked for, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m release")
    parser.add_argument("verb", choices=("dist", "smoke"))
    parser.add_argument("--into", type=Path, default=ROOT / "dist", metavar="FOLDER", help="default: dist")
    parser.add_argument(
        "--address", default="", metavar="URL", help="the repository; a release cannot do without it"
    )
    parser.add_argument(
        "--releases", default="", metavar="URL", help="where the bundles will be, for server.json"
    )
    chosen = parser.parse_args()
    # What is only tried leads nowhere: a reserved domain (RFC 2606).
    address = chosen.address or (TRIED_ADDRESS if chosen.verb == "smoke" else "")
    address = published.check_address(address)
    if chosen.verb == "dist":
        images.check_pinned()
    begun = time.monotonic()
    built = build(chosen.into, address, chosen.releases)
    for path in sorted(path for path in chosen.into.rglob("*") if path.is_file()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(chosen.into).as_posix()}")
    print(f"built in {time.monotonic() - begun:.0f} s", flush=True)
    if chosen.verb == "dist":
        return 0
    with tempfile.TemporaryDirectory(prefix="bridgehead-smoke-") as folder:
        return 0 if smoke(built, Path(folder)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
