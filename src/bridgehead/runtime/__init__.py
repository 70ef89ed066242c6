"""Shared by bridges: settings, errors, logs, metrics, durable files, an HTTP client, stores, manifests.

Independent of any bridge. What is heavy or optional (rich, redis, asyncpg) is imported on first use. The
modules in `__all__` are public to bridges, also to those of other distributions (docs/public-api.md).
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
    "key_files",
    "lines",
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
