"""Shows the apps, the dashboard and the website in a browser: `make browser`; `--pictures` keeps pictures."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser.chromium import BrowserMissing, find_chromium, prepare_packages, stage
from tests.browser.far_sides import served
from tests.interop.node import ROOT, node

SCRIPTS = ("icons.mjs", "apps.mjs", "dashboard.mjs", "site.mjs")
SITE = ROOT / "build" / "site" / "html"
IMAGES = ROOT / "docs" / "images"
ICONS = ROOT / "release" / "icons"


def main(arguments: list[str]) -> int:
    """Run every check, and return the exit status."""
    try:
        program, folder = find_chromium(), prepare_packages()
    except BrowserMissing as problem:
        if os.environ.get("CI"):
            raise
        sys.stdout.write(f"skipped: {problem}\n")
        return 0
    stage(folder)
    if not (SITE / "index.html").exists():
        sys.stdout.write("There is no website to look at: run make site first.\n")
        return 1
    with tempfile.TemporaryDirectory() as home, served(Path(home)) as places:
        told = {
            **places,
            "site": str(SITE),
            "icons": str(ICONS),
            "chromium": program,
            "images": str(IMAGES) if "--pictures" in arguments else "",
            "shots": os.environ.get("SHOTS", ""),
        }
        only = [word for word in arguments if not word.startswith("--")]
        statuses = [
            subprocess.run(
                [node(), script, json.dumps(told), *only], cwd=folder, check=False, timeout=900
            ).returncode
            for script in SCRIPTS
        ]
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
