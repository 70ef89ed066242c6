"""The settings of the real bridges, where these are part of the distribution."""

from importlib.util import find_spec

import pytest

from bridgehead.install import bridges
from bridgehead.install.needs import needs
from bridgehead.runtime.settings import Settings


@pytest.mark.parametrize("bridge", bridges.NAMES)
def test_every_bridge_can_be_installed_with_nothing_set(bridge: str) -> None:
    if find_spec(f"bridgehead.{bridge}") is None:
        pytest.skip("this bridge is not here yet")

    declared = bridges.settings_of(bridge)

    assert issubclass(declared, Settings)
    assert needs(declared, {}).variables == {}
