"""The conformance suites: owns which versions run.

`python -m tests.conformance.install` installs them and prints how each is started.
"""

from tests.interop.node import Package, node

STABLE = Package("@modelcontextprotocol/conformance", "0.1.16")
NEWEST = Package("@modelcontextprotocol/conformance", "0.2.0-alpha.12")


def command(package: Package) -> tuple[str, str]:
    """The words that start a suite, which is installed first where it is not yet."""
    package.install()
    return node(), str(package.home / "dist" / "index.js")


if __name__ == "__main__":
    for suite in (STABLE, NEWEST):
        print(" ".join(command(suite)))
