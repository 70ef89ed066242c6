"""Smoke: installs what was built as a person would, outside of the project, and uses every bridge once."""

import json
import os
import shutil
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bridgehead import __version__
from bridgehead.runtime import plugins
from release import bundle, dist
from release.client import Client

KEPT = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG")
SCRIPTS, SUFFIX = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
INSTALLERS = dist.LOCKED.with_name("installers.txt")
PATIENCE = 120
HEALTHY_OR_NOT = (0, 1)
"""What `doctor` may end with: on a machine without a game or a key it finds something to complain about."""


@dataclass(frozen=True)
class Way:
    """One way to have the command, and the folder that is a person's home."""

    name: str
    command: tuple[str, ...]
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of somebody who has set nothing."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        home = str(self.home)
        return kept | {"HOME": home, "USERPROFILE": home, "LOCALAPPDATA": home}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            [*self.command, *arguments],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


def smoke(built: dist.Built, folder: Path) -> bool:
    """Try everything that was built, in an empty folder, and tell whether all was well."""
    wheel, archive = installed(built.wheel, folder / "wheel"), copied(built.archive, folder / "archive")
    outcomes = [passes(way.name, what, check) for way in (wheel, archive) for what, check in checks(way)]
    by_tools = (by_pipx(built.wheel, folder), by_uv(built.wheel, folder))
    for way in by_tools:
        outcomes += [passes(way.name, what, check) for what, check in first_checks(way)]
    tools = installers(folder)
    for way in (wheel, *by_tools):
        outcomes.append(passes(way.name, "new", partial(new_project, way, tools)))
    outcomes.append(passes("wheel", "new, by uvx", partial(registry_entry, wheel, built.wheel, tools)))
    python = str(Path(wheel.command[0]).with_name(f"python{SUFFIX}"))
    for name, path in built.bundles.items():
        way = unpacked(path, folder / f"bundle-{name}", python)
        outcomes.append(passes(way.name, name, partial(use, way, name, way.command)))
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed", flush=True)
    return all(outcomes)


# --- having it --------------------------------------------------------------------------------------------


def installed(wheel: Path, folder: Path) -> Way:
    """Install the wheel and the locked versions of what it needs into a new environment."""
    venv.create(folder / "environment", with_pip=True)
    scripts = folder / "environment" / SCRIPTS
    pip = (str(scripts / f"python{SUFFIX}"), "-m", "pip", "install", "--quiet")
    dist.run(*pip, "--require-hashes", "--requirement", str(dist.LOCKED))
    dist.run(*pip, "--no-deps", "--no-index", str(wheel))
    return Way("wheel", (str(scripts / f"bridgehead{SUFFIX}"),), _home(folder))


def installers(folder: Path) -> Path:
    """Install pipx and uv, and return the folder of their commands."""
    environment = folder / "installers"
    if not environment.exists():
        venv.create(environment, with_pip=True)
        pip = (str(environment / SCRIPTS / f"python{SUFFIX}"), "-m", "pip", "install", "--quiet")
        dist.run(*pip, "--require-hashes", "--requirement", str(INSTALLERS))
    return environment / SCRIPTS


def by_pipx(wheel: Path, folder: Path) -> Way:
    """Install the wheel with `pipx install`, and what it needs as the package index has it today."""
    commands = folder / "pipx" / "commands"
    python = str(installers(folder) / f"python{SUFFIX}")
    own = {"PIPX_HOME": str(folder / "pipx" / "tools"), "PIPX_BIN_DIR": str(commands)}
    dist.run(
        *(python, "-m", "pipx", "install", "--quiet", "--python", sys.executable, str(wheel)), environment=own
    )
    return Way("pipx", (str(commands / f"bridgehead{SUFFIX}"),), _home(folder / "pipx"))


def by_uv(wheel: Path, folder: Path) -> Way:
    """Install the wheel with `uv tool install`, and what it needs as the package index has it today."""
    commands = folder / "uv" / "commands"
    uv = str(installers(folder) / f"uv{SUFFIX}")
    own = {"UV_TOOL_DIR": str(folder / "uv" / "tools"), "UV_TOOL_BIN_DIR": str(commands)}
    dist.run(uv, "tool", "install", "--quiet", "--python", sys.executable, str(wheel), environment=own)
    return Way("uv tool", (str(commands / f"bridgehead{SUFFIX}"),), _home(folder / "uv"))


def copied(archive: Path, folder: Path) -> Way:
    """Copy the archive, and take a Python that has nothing installed."""
    venv.create(folder / "environment", with_pip=False)
    python = folder / "environment" / SCRIPTS / f"python{SUFFIX}"
    copy = folder / "bridgehead.pyz"
    copy.write_bytes(archive.read_bytes())
    return Way("archive", (str(python), str(copy)), _home(folder))


def unpacked(path: Path, folder: Path, python: str) -> Way:
    """Unpack a bundle, and take a Python that has what it asks for, as uv would make one."""
    with zipfile.ZipFile(path) as packed:
        packed.extractall(folder / "content")
    return Way("bundle", (python, str(folder / "content" / bundle.ENTRY_POINT)), _home(folder))


def _home(folder: Path) -> Path:
    home = folder / "home"
    home.mkdir(parents=True)
    return home


# --- using it ---------------------------------------------------------------------------------------------


def checks(way: Way) -> list[tuple[str, Callable[[], None]]]:
    """Everything that the command must do."""
    offered = list(plugins.built_in_names())
    listed = first_checks(way)
    listed.append(("--help", partial(help_text, way, offered)))
    listed += [(f"demo {name}", partial(demo, way, name)) for name in offered]
    if _names("doctor", way.run("--help").stdout):
        listed.append(("doctor", partial(doctor, way)))
    return listed


def first_checks(way: Way) -> list[tuple[str, Callable[[], None]]]:
    """What tells whether the command works at all: its version, and every bridge."""
    listed: list[tuple[str, Callable[[], None]]] = [("--version", partial(version, way))]
    return listed + [
        (name, partial(use, way, name, (*way.command, name))) for name in plugins.built_in_names()
    ]


def version(way: Way) -> None:
    """The command tells the version that was built."""
    done = way.run("--version")
    assert (done.returncode, done.stdout) == (0, f"bridgehead {__version__}\n"), done


def help_text(way: Way, offered: list[str]) -> None:
    """The help names every bridge that the distribution has."""
    done = way.run("--help")
    assert done.returncode == 0, done
    assert [name for name in offered if not _names(name, done.stdout)] == [], done.stdout


def use(way: Way, name: str, command: tuple[str, ...]) -> None:
    """A bridge shakes hands, lists its tools, answers a call and ends well."""
    set_up = plugins.load(name).load_trial()
    assert set_up is not None, f"the demo of {name} has no trial"
    with (
        set_up(way.home) as trial,
        Client(command, {**way.environment, **trial.environment}, way.home) as client,
    ):
        client.hello()
        tools = client.tools()
        assert trial.tool in tools, tools
        text = client.call(trial.tool, trial.arguments)
        assert trial.expected in text, text


def demo(way: Way, name: str) -> None:
    """The demo of a bridge goes well, with the simulator that the distribution comes with."""
    done = way.run("demo", name)
    assert done.returncode == 0, done


def new_project(way: Way, tools: Path) -> None:
    """A project of `bridgehead new` works: its file as it is, and its bridge by name after `make install`."""
    project = way.home / "smoke-bridge"
    done = way.run("new", "smoke", str(project))
    assert done.returncode == 0, done
    file = way.run("call", str(project / "src/smoke_bridge/bridge.py"), "read_note", "name=welcome")
    assert (file.returncode, "Edit src/smoke_bridge/bridge.py" in file.stdout) == (0, True), file
    make = shutil.which("make")
    if make is None:  # Windows
        return
    installed = subprocess.run(
        [make, "install", "test"],
        # The machine's own environment: it says where packages come from.
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=dist.PATIENCE,
        check=False,
    )
    assert installed.returncode == 0, installed
    done = way.run("call", "smoke", "read_note", "name=welcome")
    assert (done.returncode, "Edit src/smoke_bridge/bridge.py" in done.stdout) == (0, True), done


def registry_entry(way: Way, wheel: Path, tools: Path) -> None:
    """A client that starts a new project by its server.json, as registries have it, gets its bridge."""
    project, packages = way.home / "listed-bridge", way.home / "packages"
    done = way.run("new", "listed", str(project))
    assert done.returncode == 0, done
    dist.run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(packages)), str(project)
    )
    shutil.copy(wheel, packages)
    (package,) = json.loads((project / "server.json").read_text(encoding="utf-8"))["packages"]
    command = (
        str(tools / f"{package['runtimeHint']}{SUFFIX}"),
        *_words(package.get("runtimeArguments", [])),
        f"{package['identifier']}=={package['version']}",
        *_words(package.get("packageArguments", [])),
    )
    # Neither is published: uv finds both here, and what they need at its index.
    own = {"UV_FIND_LINKS": str(packages), "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    with Client(command, {**os.environ, **own}, way.home) as client:
        introduced = client.hello()
        assert introduced["name"] == "listed", introduced
        text = client.call("read_note", {"name": "welcome"})
        assert "Edit src/listed_bridge/bridge.py" in text, text


def _words(arguments: list[dict[str, str]]) -> list[str]:
    """Return the words of arguments in a registry's file."""
    return [word for each in arguments for word in (each.get("name"), each.get("value")) if word]


def doctor(way: Way) -> None:
    """The doctor looks at everything and says so."""
    done = way.run("doctor")
    assert done.returncode in HEALTHY_OR_NOT, done
    assert done.stdout.strip(), done
    assert "Traceback" not in done.stdout + done.stderr, done


def _names(word: str, text: str) -> bool:
    return any(line.split()[:1] == [word] for line in text.splitlines())


def passes(way: str, what: str, check: Callable[[], None]) -> bool:
    """Run one check and print how it went."""
    begun = time.monotonic()
    try:
        check()
    except (AssertionError, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as failure:
        print(f"failed  {way} {what}: {type(failure).__name__}: {failure}", flush=True)
        print(*getattr(failure, "__notes__", ()), sep="\n", flush=True)
        return False
    print(f"ok      {way} {what} ({time.monotonic() - begun:.1f} s)", flush=True)
    return True
