"""Manifest: a bridge's declaration, which all other parts read.

A bridge declares it once, as `manifest` in its `bridge.py`. `serve`, `install`, `doctor`, `tools`, `call`,
`demo`, `completion`, `token`, the documents and the release bundles read it, and name no bridge themselves.
Importing `bridge.py` is part of a server's cold start. Parts that only commands need are therefore not
declared: the modules `doctor`, `demo` and `commands` of the package are imported by name when they are used.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from bridgehead.mcp import Bridge, DeclarationError, stdio

from .directories import StateSettings
from .env_file import narrow
from .errors import BridgeError, place_of
from .settings import PRODUCT, Setting, Settings, find_unused, prefix_of_bridge
from .tasks import open_task_store
from .tool_filter import offer_tools

if TYPE_CHECKING:
    from rich.console import Console

    from bridgehead.mcp import TaskStore

    from .command_line import Parser
    from .findings import Finding, Report
    from .metrics import Metrics
    from .stores.migrations import Schema


API = 1
"""Version of the plugin API; grows with each incompatible change."""


# Strings: msgspec evaluates the annotations of a struct, and these types are imported for checking only.
Make: TypeAlias = "Callable[[Any, Metrics | None], Bridge[Any]]"
Doctor: TypeAlias = "Callable[[Mapping[str, str]], Awaitable[list[Finding]]]"
Demo: TypeAlias = "Callable[[Console], bool]"
MakeReport: TypeAlias = "Callable[[Any], Awaitable[Report]]"
ReadSchema: TypeAlias = "Callable[[], Schema]"
OpenTrial: TypeAlias = "Callable[[Path], AbstractContextManager[Trial]]"


class FarSide(Struct, frozen=True):
    """Whether the far side of a bridge is reachable now, and a sentence about it for people."""

    is_up: bool
    detail: str


def _report_no_far_side(_lifespan: Any) -> FarSide:
    return FarSide(is_up=True, detail="It reports no connection.")


class FormField(Struct, frozen=True):
    """A setting that a desktop client asks for when it installs the bridge."""

    variable: str
    title: str
    is_required: bool = False
    question: str = ""
    """What `install` asks at a terminal if it is not set; empty if it does not ask."""


class Kept(Struct, frozen=True):
    """A folder or file that a bridge makes by itself, and what it holds; `uninstall` lists and removes it."""

    root: Literal["state", "data", "config"]
    path: str
    """From that directory of the user on."""
    about: str


class Trial(Struct, frozen=True):
    """A call to try an installed bridge with, against a simulated far side."""

    environment: Mapping[str, str]
    tool: str
    expected: str
    """A substring of the answer."""
    arguments: Mapping[str, Any] = {}


class Commands(Protocol):
    """The subcommands of one bridge; usually its module `commands`."""

    def parser(self) -> Parser:
        """Return the parser of the command line; completion reads it too."""
        ...

    def main(self, arguments: list[str], environment: Mapping[str, str]) -> int:
        """Run a command and return the exit status."""
        ...


class BrokenPart(BridgeError):
    """A module of a bridge cannot be imported or lacks its function."""

    code = "plugin"


class Manifest(Struct, frozen=True, kw_only=True):
    """A bridge's declaration."""

    name: str
    title: str
    summary: str
    """One line for help and lists."""
    description: str
    """One sentence for people who choose what to install."""
    settings: type[Settings] = Settings
    make: Make
    """Takes the settings and the metrics to add to (None if they are not exported). Opens nothing yet."""
    far_side: Callable[[Any], FarSide] = _report_no_far_side
    """Takes the lifespan's value, None before it has begun. Must not block."""
    probe: Callable[[Any], Awaitable[None]] | None = None
    """Takes the lifespan's value and contacts the far side, so that `far_side` is up to date without a call.

    The host calls it now and then. It should be cheap and end by itself within seconds."""
    report: MakeReport | None = None
    """Takes the lifespan's value and returns the far side's state for the host's page.

    Called only while the page is open. It should be cheap and end within a second or two."""
    package: str = ""
    """`__package__`, if the bridge has a module `doctor`, `demo` or `commands`; none is required."""
    serve: Callable[[Bridge[Any], Any], int] | None = None
    """Takes the bridge and its settings and serves one client; None means plain stdio."""
    first_step: Callable[[Any], str] | None = None
    """Takes the settings; returns the user's next step after a client has the bridge."""
    form: tuple[FormField, ...] = ()
    keywords: tuple[str, ...] = ()
    """Search terms of people who need such a bridge."""
    schema: ReadSchema | None = None
    """Reads the tables for BRIDGEHEAD_DATABASE_URL; `bridgehead db migrate` creates them."""
    single_process: str = ""
    """Why only one process can serve it; empty if several can."""
    keeps: tuple[Kept, ...] = ()
    """What it keeps beside `NAME` in the state directory, or in it."""
    tour: int = 0
    """The place of its demo: that with the highest number comes last and stays on the screen."""
    api: int = API

    def load_doctor(self) -> Doctor | None:
        """Return `doctor.examine`: it takes the environment and returns findings."""
        doctor: Doctor | None = self._load("doctor", "examine")
        return doctor

    def load_demo(self) -> Demo | None:
        """Return `demo.show_demo`: it shows the bridge at work against a simulated far side.

        It takes a console and returns whether everything went as expected.
        """
        demo: Demo | None = self._load("demo", "show_demo")
        return demo

    def load_trial(self) -> OpenTrial | None:
        """Return `demo.trial`: it sets up a far side in a folder, to try an installed bridge with.

        The release checks use it. A demo need not have one.
        """
        trial: OpenTrial | None = getattr(self._import("demo"), "trial", None)
        return trial

    def load_commands(self) -> Commands | None:
        """Return the module `commands`, with its functions `parser` and `main`."""
        self._load("commands", "parser")
        self._load("commands", "main")
        commands: Commands | None = self._import("commands")
        return commands

    def _load(self, module: str, function: str) -> Any:
        imported = self._import(module)
        if imported is None or hasattr(imported, function):
            return getattr(imported, function, None)
        raise BrokenPart(f"{imported.__name__} has no function {function!r}.", next_step="Add it.")

    def _import(self, module: str) -> Any:
        """Import a module of the package; None if the package does not have it."""
        from importlib.util import find_spec

        path = f"{self.package}.{module}"
        # Not `except ModuleNotFoundError`: that would also hide a missing import inside the module.
        if not self.package or find_spec(path) is None:
            return None
        try:
            return import_module(path)
        except Exception as failure:
            reason = f"{type(failure).__name__}: {failure}".rstrip(".")
            raise BrokenPart(f"{path} cannot be imported: {reason}.") from failure


def read_settings(manifest: Manifest, environment: Mapping[str, str]) -> Settings:
    """Read a bridge's declared settings from an environment; raises SettingError."""
    return manifest.settings(narrow(environment, manifest.settings.declared))


def make_bridge(manifest: Manifest, environment: Mapping[str, str]) -> Bridge[Any]:
    """Make a bridge with the tools that pass the tool filter in the environment, and with its prefix."""
    settings = read_settings(manifest, environment)
    return offer_tools(_declare(manifest, settings), settings, environment)


def _declare(manifest: Manifest, settings: Settings) -> Bridge[Any]:
    try:
        return manifest.make(settings, None)
    except DeclarationError as failure:
        raise BrokenPart(f"{place_of(failure)}: {failure}") from failure


def serve(manifest: Manifest, environment: Mapping[str, str], of_host: Collection[Setting[Any]] = ()) -> int:
    """Serve a bridge to the client that started this process, and return the exit status.

    With the settings of the host, variables that begin like them and are none are named as well.
    """
    settings = read_settings(manifest, environment)
    prefixes = (prefix_of_bridge(manifest.name), *([PRODUCT] if of_host else []))
    declared = (*manifest.settings.declared, *of_host)
    for problem in find_unused(environment, declared, manifest.settings.removed, prefixes):
        sys.stderr.write(f"bridgehead {manifest.name}: {problem}\n")
    bridge = offer_tools(_declare(manifest, settings), settings, environment)

    def open_store() -> TaskStore:
        return open_task_store(StateSettings(narrow(environment, StateSettings.declared)), manifest.name)

    bridge.task_store = open_store
    if manifest.serve is not None:
        return manifest.serve(bridge, settings)

    return stdio.run(bridge)
