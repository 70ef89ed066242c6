"""Child processes that tests start: what of the environment they get."""

import os


def unmeasured() -> dict[str, str]:
    """Return the environment without what would measure a child: it loads modules, opens files and writes."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}
