"""What at least two bridges need: settings, errors, logs, metrics, durable files, an HTTP client, manifests.

Knows no bridge. Every module here is cheap to import, because a server's first answer waits for it; what is
dear (logging, rich, argparse) is loaded when it is used. Public to bridges, also to those of other
distributions, are the modules named in `__all__`, as docs/public-api.md says.
"""

from bridgehead import msgspec_loader  # noqa: F401 - before anything that imports msgspec

__all__ = [
    "command_line",
    "demo_script",
    "directories",
    "durable",
    "env_file",
    "errors",
    "events",
    "findings",
    "http",
    "logs",
    "manifest",
    "metrics",
    "plugins",
    "settings",
    "stores",
    "tasks",
    "timing",
    "tool_filter",
]
