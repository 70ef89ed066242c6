"""The first file of a bundle: runs the bridge that the bundle is for."""

import os
import sys

# Filled in when the bundle is made.
BRIDGE = "@BRIDGE@"

PLACEHOLDER = "${user_config."


def main() -> int:
    """Serve the bridge with the settings that were filled in, and return the exit status."""
    for variable, value in list(os.environ.items()):
        if value.startswith(PLACEHOLDER):  # some hosts leave it in place where a field was left empty
            del os.environ[variable]
    sys.argv[:] = ["bridgehead", BRIDGE]
    from bridgehead.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
