"""Locked: what a lock file of requirements/ says: packages, versions, hashes, and who needs whom."""

import re
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NEEDED_BY = re.compile(r"^    # (?:via)?\s*(\S.*)?$")
LICENCES = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""The names of metadata that predate SPDX expressions."""
NOT_INSTALLED = {"async-timeout": "Apache-2.0"}
"""Packages for other systems or Pythons than ours, whose metadata are not here to read."""


@dataclass
class Package:
    """One locked package."""

    name: str
    version: str
    marker: str = ""
    """For which systems and Pythons it is; empty for all."""
    hashes: list[str] = field(default_factory=list)
    """SHA-256 of each file that may be installed for it."""
    needed_by: list[str] = field(default_factory=list)
    """The packages that need it; `bridgehead` for those that pyproject.toml names."""

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"

    @property
    def licence(self) -> str:
        """Its licence as an SPDX expression; empty if its metadata do not tell."""
        try:
            about = metadata.distribution(self.name).metadata
        except metadata.PackageNotFoundError:
            return NOT_INSTALLED.get(self.name, "")
        lines = about.get_all("Classifier") or []
        named = [line.rpartition(" :: ")[2] for line in lines if line.startswith("License ::")]
        (text, *_) = [
            *(about.get_all("License-Expression") or []),
            *(about.get_all("License") or []),
            " OR ".join(LICENCES.get(one, one) for one in named),
        ]
        return LICENCES.get(str(text), str(text))


def read(path: Path) -> list[Package]:
    """Read a lock file."""
    packages: list[Package] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := _PACKAGE.match(line):
            packages.append(Package(match[1], match[2], match[3] or ""))
        elif packages and (hashed := _HASH.search(line)):
            packages[-1].hashes.append(hashed[1])
        elif packages and (needed := _NEEDED_BY.match(line)) and needed[1]:
            who = needed[1].strip()
            if not who.startswith(("-c ", "-r ")):
                packages[-1].needed_by.append("bridgehead" if "pyproject.toml" in who else who)
    return packages
