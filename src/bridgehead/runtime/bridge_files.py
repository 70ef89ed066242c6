r"""Bridge files: loads a bridge from a Python file or module that its author names on the command line.

A target is the name of a bridge (`aoc`), a path (`server.py`, `C:\mine\server.py`) or a module
(`weather_bridge.bridge`); after a path or module, `:name` picks an object in it. A file is imported as Python
itself would import it: with the files beside it, and as a part of its package if it is in one. A plain
`Bridge` is wrapped in a manifest, so that commands only handle manifests.
"""

# ruff: noqa: PTH100, PTH109, PTH111, PTH112, PTH113, PTH118, PTH119, PTH208 - paths are strings here

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from types import ModuleType
from typing import Any

from msgspec import Struct

from bridgehead.mcp import Bridge
from bridgehead.mcp.process import Unserved, load_without_serving

from . import plugins
from .errors import BridgeError
from .manifest import API, Manifest

_WITH_OBJECT = re.compile(r"(.+\.py):([A-Za-z_]\w*)", re.IGNORECASE | re.DOTALL)
_MODULE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::([A-Za-z_]\w*))?")
_MAX_LISTED = 8


class BridgeFileError(BridgeError):
    """A file or module is missing, cannot be imported, or does not have exactly one bridge."""

    code = "bridge_file"


class Source(Struct, frozen=True):
    """A Python file that declares a bridge."""

    path: str
    """The absolute path of the file."""
    attribute: str = ""
    """The object to take; empty to find it by its type."""
    module: str = ""
    """The dotted name, if a module was named; empty for a path."""

    @property
    def target(self) -> str:
        """The target that means the same file and object from any folder."""
        return f"{self.path}:{self.attribute}" if self.attribute else self.path


def is_file(target: str) -> bool:
    """Return whether a target is written as a path (ends in .py or has a separator of any system)."""
    path, _ = split(target)
    return path.lower().endswith(".py") or "/" in path or "\\" in path


def split(target: str) -> tuple[str, str]:
    """Split `path:name` into both; a colon elsewhere, such as after a drive, belongs to the path."""
    match = _WITH_OBJECT.fullmatch(target)
    return (match[1], match[2]) if match else (target, "")


def make_absolute(target: str) -> str:
    """Make the path in a target absolute and keep its `:name`; the file need not exist."""
    path, attribute = split(target)
    return Source(os.path.abspath(os.path.expanduser(path)), attribute).target


def suggestions() -> tuple[str, ...]:
    """Return the targets that a shell can complete: bridges, and the Python files of this folder."""
    try:
        files = sorted(name for name in os.listdir() if name.endswith(".py"))
    except OSError:
        files = []
    return (*plugins.names(), *files)


def find(target: str) -> Source | None:
    """Find the file of a path or module, without importing it; None for the name of a bridge.

    Raises BridgeFileError if there is no such file, and UnknownBridge for an unknown name.
    """
    if is_file(target):
        path, attribute = split(make_absolute(target))
        if os.path.isdir(path):
            raise BridgeFileError(f"{path} is a folder.", next_step="Name a Python file in it.")
        if not os.path.isfile(path):
            raise BridgeFileError(f"There is no file {path}.", next_step="Check the path.")
        if not path.lower().endswith(".py"):
            raise BridgeFileError(f"{path} is not a Python file.", next_step="Name one that ends in .py.")
        return Source(path, attribute)
    if target in plugins.names():
        return None
    match = _MODULE.fullmatch(target)
    spec = None
    if match is not None:
        from importlib.util import find_spec

        _search_first(os.getcwd())  # as with `python -m`
        try:
            spec = find_spec(match[1])
        except (ImportError, ValueError):  # no such package; a module without a spec, such as __main__
            spec = None
    if match is None or spec is None or spec.origin is None or not os.path.isfile(spec.origin):
        raise plugins.UnknownBridge(target)
    return Source(os.path.abspath(spec.origin), match[2] or "", match[1])


def load(target: str) -> Manifest:
    """Load the manifest of a bridge by its name, its file or its module; raises BridgeError."""
    source = None if plugins.is_built_in(target) else find(target)
    return plugins.load(target) if source is None else load_source(source)


def load_source(source: Source) -> Manifest:
    """Import a file and return its manifest, or one that is made for its bridge."""
    shown = source.module or os.path.basename(source.path)
    module = _import(source, shown)
    loaded = _choose(vars(module), source, shown)
    if isinstance(loaded, Bridge):
        return _describe(loaded, source)
    if loaded.api != API:
        raise BridgeFileError(f"{shown} needs API {loaded.api}, and this Bridgehead has API {API}.")
    return loaded


def _import(source: Source, shown: str) -> ModuleType:
    """Import a file once; redirect its prints, since standard output belongs to the protocol."""
    from importlib import import_module, invalidate_caches
    from importlib.util import module_from_spec, spec_from_file_location

    name = source.module or _module_name(source.path)
    known = sys.modules.get(name)
    origin = getattr(known, "__file__", None)
    is_another = origin is None or os.path.realpath(origin) != os.path.realpath(source.path)
    if known is not None and is_another:
        name = _unique_name(source.path)  # other importers of that name keep their module
        known = sys.modules.get(name)
    if known is not None:
        return known
    invalidate_caches()
    try:
        with redirect_stdout(sys.stderr), load_without_serving():
            parent = name.rpartition(".")[0]
            if parent:
                import_module(parent)
            spec = spec_from_file_location(name, source.path)
            # A file that ends in .py always has a spec with a loader.
            assert spec is not None and spec.loader is not None  # noqa: PT018, S101
            # Registered before it runs, so that files beside it can import it and get the same bridge.
            module = sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(module)
    except Unserved:
        # It serves its bridge without `if __name__ == "__main__"`. Use what it has declared so far.
        if name in sys.modules:
            return sys.modules[name]
        raise BridgeFileError(f"The package of {shown} serves a bridge when it is imported.") from None
    except KeyboardInterrupt:
        raise
    except BaseException as failure:  # SystemExit included
        sys.modules.pop(name, None)
        raise _unusable(failure, source, shown) from failure
    return module


def _module_name(path: str) -> str:
    """Return the dotted name of a file in its package, and let Python find that package."""
    folder, file = os.path.split(path)
    stem = file[: -len(".py")]
    parts = [] if stem == "__init__" else [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    if parts == [stem] and ("." in stem or stem in sys.stdlib_module_names):
        # A calendar.py must not shadow the standard library's `calendar`, neither in sys.modules nor by
        # coming first in sys.path.
        if folder not in sys.path:
            sys.path.append(folder)
        return _unique_name(path)
    _search_first(folder)
    return ".".join(parts)


def _unique_name(path: str) -> str:
    return f"bridgehead_file_{os.fsencode(path).hex()}"


def _search_first(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _unusable(failure: BaseException, source: Source, shown: str) -> BridgeFileError:
    """Say where in the author's file an import failed, and why."""
    line = None
    if isinstance(failure, SyntaxError) and failure.filename == source.path:
        line = failure.lineno
    trace = failure.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == source.path:
            line = trace.tb_lineno
        trace = trace.tb_next
    reason = getattr(failure, "msg", None) if isinstance(failure, SyntaxError) else failure
    place = shown if line is None else f"{shown}, line {line}"
    text = f"{place}: {type(failure).__name__}: {str(reason).rstrip('.')}."
    step = ""
    if isinstance(failure, ModuleNotFoundError):
        step = f"Install it for {sys.executable}, the Python that runs Bridgehead, or check the name."
    return BridgeFileError(text, next_step=step)


def _choose(names: Mapping[str, Any], source: Source, shown: str) -> Manifest | Bridge[Any]:
    if source.attribute:
        if source.attribute not in names:
            raise BridgeFileError(f"{shown} has no {source.attribute!r}.", next_step=_hint(names, shown))
        value = names[source.attribute]
        if not isinstance(value, Manifest | Bridge):
            raise BridgeFileError(
                f"{source.attribute} in {shown} is of type {type(value).__name__}, not a Bridge or Manifest.",
                next_step=_hint(names, shown),
            )
        return value
    declared = _declared(names)
    # A manifest is preferred to the bridge that it makes. Among several, the usual name decides.
    manifests = {name: value for name, value in declared.items() if isinstance(value, Manifest)}
    candidates = manifests or declared
    usual = "manifest" if manifests else "bridge"
    if usual in candidates:
        return candidates[usual]
    if len(candidates) == 1:
        return next(iter(candidates.values()))
    if not candidates:
        has = ", ".join(_own_names(names, _MAX_LISTED))
        stem = os.path.basename(source.path)[: -len(".py")]
        raise BridgeFileError(
            f"{shown} has no Bridge or Manifest at its top level{f', only {has}' if has else ''}.",
            next_step=f'Declare one there, such as bridge = Bridge("{stem}", "1.0.0").',
        )
    listed = ", ".join(
        f"{name} (Bridge {value.info.name!r})"
        if isinstance(value, Bridge)
        else f"{name} (Manifest {value.name!r})"
        for name, value in candidates.items()
    )
    raise BridgeFileError(f"{shown} has {len(candidates)} bridges: {listed}.", next_step=_hint(names, shown))


def _declared(names: Mapping[str, Any]) -> dict[str, Manifest | Bridge[Any]]:
    """Return the bridges and manifests; an object with two names is listed once, by its first."""
    by_identity: dict[int, tuple[str, Any]] = {}
    for name, value in names.items():
        if isinstance(value, Manifest | Bridge):
            by_identity.setdefault(id(value), (name, value))
    return dict(by_identity.values())


def _hint(names: Mapping[str, Any], shown: str) -> str:
    declared = list(_declared(names))
    return f"Name one of them: {', '.join(f'{shown}:{name}' for name in declared)}." if declared else ""


def _own_names(names: Mapping[str, Any], limit: int) -> Iterator[str]:
    """Yield the public names that a module itself defines, with their types."""
    own = names.get("__name__")
    for name, value in names.items():
        if name.startswith("_") or getattr(value, "__module__", own) != own:
            continue
        kind = type(value).__name__
        if kind == "module" or limit == 0:
            continue
        limit -= 1
        yield f"{name} ({'class' if isinstance(value, type) else kind})"


def _describe(bridge: Bridge[Any], source: Source) -> Manifest:
    """Make the manifest of a plain bridge: no settings, and a far side that is always up."""
    info = bridge.info
    title = info.title or info.name
    return Manifest(
        name=_name_for_commands(info.name)
        or _name_for_commands(os.path.basename(source.path)[:-3])
        or "bridge",
        title=title,
        summary=info.description or title,
        description=info.description or title,
        make=lambda _settings, _metrics: bridge,
    )


def _name_for_commands(name: str) -> str:
    """Turn a name into one that URLs and clients accept (`plugins.NAME`); empty if that is impossible."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")
    if slug in plugins.RESERVED:
        return f"{slug}-bridge"
    return slug if not slug or slug[0].isalpha() else f"bridge-{slug}"
