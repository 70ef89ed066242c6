"""Shared by bridges: settings, errors, logs, metrics, durable files, an HTTP client, stores, manifests.

Independent of any bridge. Every module here is cheap to import, because a server's first answer waits for it;
expensive imports (logging, rich, argparse) happen on first use. The modules in `__all__` are public to
bridges, also to those of other distributions (docs/public-api.md).
"""

from bridgehead import msgspec_loader  # noqa: F401 - before anything that imports msgspec

__all__ = [
    "bridge_files",
    "callers",
    "command_line",
    "demo_script",
    "directories",
    "durable",
    "env_file",
    "errors",
    "events",
    "exposition",
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
