"""The settings of the real bridges, and that everybody means the same bridges."""

import pytest

from bridgehead import cli
from bridgehead.host import registry
from bridgehead.install import bridges
from bridgehead.install.needs import needs
from bridgehead.runtime.settings import Settings


@pytest.mark.parametrize("bridge", bridges.NAMES)
def test_every_bridge_can_be_installed_with_nothing_set(bridge: str) -> None:
    declared = bridges.settings_of(bridge)

    assert issubclass(declared, Settings)
    assert needs(declared, {}).variables == {}


def test_the_bridges_that_can_be_started_served_and_installed_are_the_same() -> None:
    assert bridges.NAMES == registry.NAMES == tuple(cli._BRIDGES)  # noqa: SLF001 - its table is all it has
