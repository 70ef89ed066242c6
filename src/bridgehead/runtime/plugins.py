"""Plugins: finds the bridges, built-in and of other distributions, and loads their manifests.

A built-in bridge is a package of this distribution with a `bridge.py` and a `settings.py`. It is found
without `importlib.metadata`, because every server starts through here and that import alone takes half as
long as a server's first answer. The bridges of other distributions are entry points in the group
`bridgehead.bridges` (ours are registered there too). Finding one imports nothing of it.
"""

# ruff: noqa: PTH113, PTH116, PTH118, PTH123, PTH208 - paths are strings here

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from importlib import import_module

from msgspec import Struct

import bridgehead

from .errors import BridgeError
from .manifest import API, Manifest
from .settings import closest

GROUP = "bridgehead.bridges"
NAME = re.compile(r"[a-z][a-z0-9_-]*")
RESERVED = frozenset(
    {
        "audit",
        "call",
        "check",
        "completion",
        "db",
        "demo",
        "dev",
        "doctor",
        "help",
        "install",
        "new",
        "serve",
        "token",
        "tools",
        "uninstall",
        "version",
    }
    | {"bridgehead", "host", "none"}  # the server of all bridges, a part of doctor, a token without bridges
)
"""Names that have another meaning on the command line."""
_SUFFIX = ".dist-info"
_listed: dict[tuple[tuple[str, int], ...], list[Plugin]] = {}
"""The entry points, by the state of `sys.path` in which they were read."""
_DECLARED_API = re.compile(r"^API\s*=\s*(\d+)\s*(?:#.*)?$", re.MULTILINE)


class Plugin(Struct, frozen=True):
    """A bridge that another distribution registers."""

    name: str
    target: str
    """`package.module:attribute` of its manifest."""
    distribution: str
    version: str
    problem: str = ""
    """Why it is refused; empty if it is accepted."""

    @property
    def source(self) -> str:
        """The distribution and its version, for messages."""
        return f"{self.distribution} {self.version}"


class UnknownBridge(BridgeError):
    """There is no bridge of this name."""

    code = "unknown_bridge"

    def __init__(self, name: str) -> None:
        known = names()
        meant = closest(name, known)
        step = f"Did you mean {meant!r}?" if meant else f"Available: {', '.join(known)}."
        super().__init__(f"Unknown bridge {name!r}.", next_step=step)


class PluginError(BridgeError):
    """A bridge of another distribution cannot be used; nothing else is affected."""

    code = "plugin"


def is_built_in(name: str) -> bool:
    """Return whether a bridge of this distribution has this name."""
    package = os.path.join(bridgehead.__path__[0], name)
    return NAME.fullmatch(name) is not None and all(
        os.path.isfile(os.path.join(package, module)) for module in ("bridge.py", "settings.py")
    )


def built_in_names() -> tuple[str, ...]:
    """Return the names of the bridges of this distribution."""
    return tuple(sorted(name for name in os.listdir(bridgehead.__path__[0]) if is_built_in(name)))


def names() -> tuple[str, ...]:
    """Return the names of all bridges, built-in ones first; imports none of them."""
    return (*built_in_names(), *(plugin.name for plugin in installed_plugins() if not plugin.problem))


def installed_plugins() -> list[Plugin]:
    """List the bridges of other distributions, including the refused ones."""
    return _check_names(_list_entry_points())


def find_plugin(name: str) -> Plugin | None:
    """Find a bridge of another distribution by its name.

    Tries our own fast scan of `sys.path` first; only the standard library finds zip files and `.egg-info`.
    """
    for search in (_scan_entry_points, _list_entry_points):
        for plugin in _check_names(plugin for plugin in search() if plugin.name == name):
            return plugin
    return None


def load(name: str) -> Manifest:
    """Load the manifest of a bridge; raises UnknownBridge or PluginError."""
    if is_built_in(name):
        manifest: Manifest = import_module(f"bridgehead.{name}.bridge").manifest
        return manifest
    plugin = find_plugin(name)
    if plugin is None:
        raise UnknownBridge(name)
    return load_plugin(plugin)


def load_usable(report: Callable[[PluginError], object]) -> Iterator[Manifest]:
    """Load every bridge; report a plugin that cannot be loaded and go on."""
    for name in names():
        try:
            yield load(name)
        except PluginError as error:
            report(error)


def load_plugin(plugin: Plugin) -> Manifest:
    """Import a plugin's manifest; raises PluginError if it fails or is for another API."""
    if plugin.problem:
        raise PluginError(plugin.problem)
    from importlib.util import find_spec

    try:
        with redirect_stdout(sys.stderr):  # standard output belongs to the protocol
            # Read the line `API = 1` before the module runs: one for a newer API may fail to import here.
            module, _, attribute = plugin.target.partition(":")
            spec = find_spec(module)
            get_source = getattr(spec and spec.loader, "get_source", None)
            source = get_source(spec.name) if spec is not None and get_source is not None else None
            if declared := _DECLARED_API.search(source or ""):
                _check_api(plugin, int(declared.group(1)))
            manifest: object = import_module(module)
            for part in attribute.split("."):
                manifest = getattr(manifest, part)
    except (PluginError, KeyboardInterrupt):
        raise
    except BaseException as failure:  # SystemExit included: a plugin's failure must stay its own
        raise _unusable(plugin, f"{type(failure).__name__}: {failure}") from failure
    if not isinstance(manifest, Manifest):
        raise _unusable(plugin, f"{plugin.target} is not a Manifest")
    _check_api(plugin, manifest.api)
    if manifest.name != plugin.name:
        raise _unusable(plugin, f"its manifest has the name {manifest.name!r}")
    return manifest


def _check_api(plugin: Plugin, api: int) -> None:
    if api == API:
        return
    what = f"The bridge {plugin.name} ({plugin.source}) needs API {api}, and this Bridgehead has API {API}."
    step = "Upgrade bridgehead." if api > API else f"Upgrade {plugin.distribution}."
    raise PluginError(what, next_step=step)


def _unusable(plugin: Plugin, reason: str) -> PluginError:
    return PluginError(
        f"The bridge {plugin.name} ({plugin.source}) cannot be loaded: {reason.rstrip('.')}.",
        next_step=f"Upgrade or uninstall {plugin.distribution}.",
    )


def _check_names(candidates: Iterable[Plugin]) -> list[Plugin]:
    """Mark plugins whose name is invalid or taken by a built-in, a command or a second distribution."""
    by_name: dict[str, dict[str, Plugin]] = defaultdict(dict)
    for plugin in candidates:
        # The first on sys.path is the one that Python would import.
        by_name[plugin.name].setdefault(plugin.distribution, plugin)
    checked = []
    for name in sorted(by_name):
        claims = [by_name[name][distribution] for distribution in sorted(by_name[name])]
        if is_built_in(name):
            others = [plugin for plugin in claims if plugin.distribution != bridgehead.__name__]
            checked += [_refuse(plugin, "that is the name of a built-in bridge") for plugin in others]
        elif name in RESERVED or not NAME.fullmatch(name):
            checked += [_refuse(plugin, "that name is not allowed") for plugin in claims]
        elif len(claims) > 1:
            both = " and ".join(plugin.source for plugin in claims)
            checked += [_refuse(plugin, f"both {both} register it") for plugin in claims]
        else:
            checked += claims
    return checked


def _refuse(plugin: Plugin, reason: str) -> Plugin:
    return Plugin(
        plugin.name,
        plugin.target,
        plugin.distribution,
        plugin.version,
        f"The bridge {plugin.name} of {plugin.source} is refused: {reason}. "
        "Uninstall the one you do not need.",
    )


def _normalize(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _list_entry_points() -> list[Plugin]:
    """List the entry points of all distributions; the list is kept until something is installed."""
    # A command asks several times, and reading every distribution takes about 50 ms.
    changed: list[tuple[str, int]] = []
    for folder in sys.path:
        try:
            changed.append((folder, os.stat(folder or ".").st_mtime_ns))
        except OSError:  # it does not exist
            continue
    folders = tuple(changed)
    if folders not in _listed:
        from importlib.metadata import entry_points

        _listed.clear()
        _listed[folders] = [
            Plugin(point.name, point.value, _normalize(point.dist.name), point.dist.version)
            for point in entry_points(group=GROUP)
            if point.dist is not None
        ]
    return _listed[folders]


def _scan_entry_points() -> Iterator[Plugin]:
    """Read entry points in the folders of `sys.path`: 1 to 5 ms, against 55 with `importlib.metadata`."""
    for folder in dict.fromkeys(sys.path):
        try:
            infos = [name for name in os.listdir(folder or ".") if name.endswith(_SUFFIX)]
        except OSError:  # a zip file, or nothing at all
            continue
        for info in infos:
            try:
                with open(os.path.join(folder, info, "entry_points.txt"), encoding="utf-8") as file:
                    text = file.read()
            except (OSError, ValueError):  # most distributions have none
                continue
            distribution, _, version = info.removesuffix(_SUFFIX).partition("-")
            _, _, section = f"\n{text}".partition(f"\n[{GROUP}]")
            for line in section.partition("\n[")[0].split("\n"):
                name, equals, target = line.partition("=")
                if equals and not name.lstrip().startswith(("#", ";")):
                    yield Plugin(name.strip(), target.strip(), _normalize(distribution), version)
