"""Chromium and the npm packages that drive it: owns where they come from. Any page can be tried with them."""

import hashlib
import os
import shutil
from pathlib import Path

from tests.interop.node import FOLDER, npm

HERE = Path(__file__).resolve().parent
PACKAGES = HERE / "package.json"
PROGRAMS = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")


class BrowserMissing(Exception):
    """There is no browser, or no npm to install what drives it."""


def find_chromium() -> str:
    """Return the path of a Chromium; `CHROMIUM` may name it."""
    named = os.environ.get("CHROMIUM", "")
    for name in (named, *PROGRAMS):
        if name and (found := shutil.which(name)):
            return found
    raise BrowserMissing("There is no Chromium. On Debian: apt install chromium-headless-shell")


def prepare_packages() -> Path:
    """Install the pinned packages, unless an earlier run did, and return their folder."""
    if shutil.which("npm") is None:
        raise BrowserMissing("There is no npm. On Debian: apt install npm")
    pinned = PACKAGES.read_bytes()
    folder = FOLDER / f"browser-{hashlib.sha256(pinned).hexdigest()[:12]}"
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(PACKAGES, folder)
        npm("install", "--ignore-scripts", folder=folder)
        (folder / "installed").touch()
    return folder


def stage(folder: Path) -> None:
    """Copy the scripts beside their packages, where Node looks for these."""
    for script in (*HERE.glob("*.mjs"), *HERE.glob("*.html")):
        shutil.copy(script, folder)
