"""Images: every base image that the Dockerfile and the compose files name, pinned by digest.

`python -m release.images` lists those without a digest; `--pin` asks the registry for the digest that each
tag has now and writes it behind the tag (`haproxy:3.2-alpine@sha256:…`). That needs the network, and docker,
crane or skopeo. A release is not built before all are pinned.
"""

import argparse
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = ("Dockerfile", "compose.yaml", "deploy/compose.telemetry.yaml", "deploy/replicas/compose.yaml")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
OWN = "bridgehead"
"""The image that the Dockerfile builds."""
_NAMED = (
    # The Dockerfile has the tag in an argument: FROM python:${PYTHON}
    re.compile(r"^(?P<before>ARG PYTHON=)(?P<image>\S+)", re.MULTILINE),
    re.compile(r"^(?P<before>\s*image:\s*(?:&\w+\s+)?)(?P<image>[^\s*&]\S*)", re.MULTILINE),
)
_RESOLVERS = (
    ("crane", lambda image: ["crane", "digest", image]),
    ("skopeo", lambda image: ["skopeo", "inspect", "--format", "{{.Digest}}", f"docker://{image}"]),
    (
        "docker",
        lambda image: [
            "docker",
            "buildx",
            "imagetools",
            "inspect",
            image,
            "--format",
            "{{.Manifest.Digest}}",
        ],
    ),
)


def find_unpinned(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return the file and the name of each image without a digest."""
    return [
        (name, match["image"])
        for name in FILES
        for pattern in _NAMED
        for match in pattern.finditer((root / name).read_text(encoding="utf-8"))
        if match["image"] != OWN and not DIGEST.search(match["image"])
    ]


def pin(resolve: Callable[[str], str], root: Path = ROOT) -> None:
    """Write the digest that each image's tag has now behind it."""
    for name in FILES:
        path = root / name
        text = path.read_text(encoding="utf-8")

        def add(match: re.Match[str]) -> str:
            image = match["image"].partition("@")[0]
            if image == OWN:
                return match[0]
            # An argument has the tag alone.
            whole = f"python:{image}" if "ARG" in match["before"] else image
            return f"{match['before']}{image}@{resolve(whole)}"

        for pattern in _NAMED:
            text = pattern.sub(add, text)
        path.write_text(text, encoding="utf-8")


def ask_registry(image: str) -> str:
    """Return the digest that a registry has for a tag."""
    for program, words in _RESOLVERS:
        if shutil.which(program):
            done = subprocess.run(words(image), capture_output=True, text=True, check=False)
            found = DIGEST.search(done.stdout)
            if found is None:
                raise SystemExit(f"{program} found no digest of {image}: {done.stderr.strip()}")
            return found[0]
    raise SystemExit(
        "Install crane, skopeo or docker with buildx: one of them asks the registry for digests."
    )


def check_pinned(root: Path = ROOT) -> None:
    """Exit if an image has no digest."""
    unpinned = find_unpinned(root)
    if unpinned:
        named = "\n".join(f"  {name}: {image}" for name, image in unpinned)
        raise SystemExit(
            f"A release needs the digest of every image, and these have none:\n{named}\n"
            "Run `python -m release.images --pin` with access to their registries, and commit what it writes."
        )


def main() -> int:
    """List, or pin."""
    parser = argparse.ArgumentParser(prog="python -m release.images")
    parser.add_argument(
        "--pin", action="store_true", help="ask the registries, and write or renew the digests"
    )
    if parser.parse_args().pin:
        pin(ask_registry)
    unpinned = find_unpinned()
    print("\n".join(f"{name}: {image} has no digest" for name, image in unpinned) or "every image is pinned")
    return int(bool(unpinned))


if __name__ == "__main__":
    raise SystemExit(main())
