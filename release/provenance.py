"""Provenance: which source and which locks the files of a release were built from (SLSA 1.0, in-toto).

The statement is not signed: whoever publishes signs it, for instance with `cosign attest-blob --type
slsaprovenance1`. Builds are reproducible, so anyone can check it by building again.
"""

import hashlib
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"


def describe(
    files: Iterable[Path], folder: Path, *, address: str, commit: str, locks: Iterable[Path]
) -> dict[str, Any]:
    """Describe the files of a folder; `commit` is empty where the source is no checkout."""
    source = {"uri": f"git+{address}", **({"digest": {"gitCommit": commit}} if commit else {})}
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": path.relative_to(folder).as_posix(), "digest": {"sha256": digest(path)}}
            for path in files
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"{address}/tree/main/release",
                "externalParameters": {"command": f"make dist ARGS='--address {address}'", "source": source},
                "internalParameters": {"python": platform.python_version(), "machine": platform.machine()},
                "resolvedDependencies": [
                    source,
                    *({"name": lock.name, "digest": {"sha256": digest(lock)}} for lock in locks),
                ],
            },
            "runDetails": {"builder": {"id": f"{address}/blob/main/release/dist.py"}},
        },
    }


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
