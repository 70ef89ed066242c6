"""Optional packages: every bridge, the host and every command load without those of the extras."""

import subprocess
import sys
from importlib.metadata import packages_distributions, requires

import pytest
from packaging.requirements import Requirement

from bridgehead.commands import COMMANDS
from bridgehead.runtime import plugins
from tests.support.children import unmeasured
from tests.support.waiting import PATIENCE

ENTRANCES = [
    *(f"bridgehead.{name}.bridge" for name in plugins.built_in_names()),
    *(module for module, _ in COMMANDS.values()),
    "bridgehead.host.asgi",
]
PROGRAM = """
import sys
hidden, name = set(sys.argv[1].split(",")), sys.argv[2]
class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hider())
__import__(name)
"""


def optional_packages() -> set[str]:
    """Return the top-level modules of every distribution that only an extra asks for."""
    wanted = [Requirement(line) for line in requires("bridgehead") or []]
    extra = {line.name.lower() for line in wanted if line.marker and "extra" in str(line.marker)}
    modules = {
        module
        for module, distributions in packages_distributions().items()
        if {name.lower() for name in distributions} & extra
    }
    assert modules >= {"redis", "asyncpg", "matplotlib", "jwt"}
    return modules


@pytest.mark.parametrize("name", ENTRANCES)
def test_it_loads_without_the_packages_of_the_extras(name: str) -> None:
    hidden = ",".join(sorted(optional_packages()))

    subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, hidden, name], env=unmeasured(), timeout=PATIENCE, check=True
    )
