"""A plugin harms only itself: whatever one does, the others are served, and its status says what it did."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from bridgehead.host.registry import installed
from bridgehead.runtime.manifest import Manifest
from tests.support.host_bridges import StandIns
from tests.support.host_server import hosting

PLUGIN = """
import sys
from contextlib import asynccontextmanager

from bridgehead.mcp import Bridge
from bridgehead.runtime.manifest import FarSide, Manifest
from bridgehead.runtime.settings import Settings

AT_IMPORT


@asynccontextmanager
async def lifespan():
    IN_LIFESPAN
    yield None


def make(settings, metrics):
    IN_MAKE
    bridge = Bridge("mine", "1", lifespan=lifespan)

    @bridge.tool("Say it.", name=TOOL)
    async def say(text: str) -> str:
        IN_TOOL
        return text

    return bridge


def far_side(value):
    IN_FAR_SIDE
    return FarSide(True, "It is there.")


async def probe(value):
    IN_PROBE


manifest = Manifest(
    name="mine", title="Mine", summary="", description="", settings=Settings, make=make,
    far_side=far_side, probe=probe,
)
"""
PLACES = {"IN_LIFESPAN", "IN_MAKE", "IN_TOOL", "IN_FAR_SIDE", "IN_PROBE", "AT_IMPORT"}
HARM = ["import missing_module", "sys.exit(3)", "raise RuntimeError('no')", "raise GeneratorExit", "1 / 0"]


class WithPlugin(StandIns):
    """Two bridges, and a plugin in a file between them."""

    def __init__(self, folder: Path, **changes: str) -> None:
        super().__init__("alpha", "beta")
        text = PLUGIN.replace("name=TOOL", f"name={changes.pop('tool', 'say')!r}")
        for place in PLACES:
            text = text.replace(place, changes.get(place, "pass"))
        self._path = folder / "mine.py"
        self._path.write_text(text, encoding="utf-8")

    def manifests(self, wanted: Collection[str] = ()) -> Mapping[str, Manifest]:
        alpha, beta = super().manifests().items()
        plugin, _ = installed([str(self._path), "mercury"]).items()  # alone, it would be an error
        return dict([alpha, plugin, beta])


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("place", sorted(PLACES))
async def test_whatever_a_plugin_does_the_others_are_served_and_its_status_tells(
    tmp_path: Path, place: str, harm: str
) -> None:
    stand_ins = WithPlugin(tmp_path, **{place: harm})
    serves = place not in {"AT_IMPORT", "IN_MAKE", "IN_LIFESPAN"}
    async with hosting(tmp_path, {"BRIDGEHEAD_PROBE_SECONDS": "0.01"}, stand_ins=stand_ins) as host:
        for path, tool in (("/mcp", "alpha_echo"), ("/mcp", "beta_echo"), ("/beta/mcp", "beta_echo")):
            assert (await host.try_call(path, tool)).status == 200
        ready = await host.page("/readyz")
        assert ready["bridges"]["mine"]["serves"] == serves
        if place in {"IN_FAR_SIDE", "IN_PROBE"} or not serves:
            assert not ready["bridges"]["mine"]["far_side"] or place == "IN_PROBE"
        assert (await host.try_call("/mine/mcp", "say")).status == (200 if serves else 503)
        assert (await host.get("/metrics")).status == 200


@pytest.mark.parametrize("returned", ["None", "True", "'up'", "(True, 'up')"])
async def test_a_state_of_the_far_side_that_is_none_is_unknown(tmp_path: Path, returned: str) -> None:
    stand_ins = WithPlugin(tmp_path, IN_FAR_SIDE=f"return {returned}")
    async with hosting(tmp_path, stand_ins=stand_ins) as host:
        ready = await host.page("/readyz")

    assert ready["bridges"]["mine"]["far_side"] is False
    assert "unknown whether the bridge is connected" in ready["bridges"]["mine"]["says"]


async def test_a_tool_with_a_name_that_is_taken_is_not_served_and_the_first_one_is(tmp_path: Path) -> None:
    async with hosting(tmp_path, stand_ins=WithPlugin(tmp_path, tool="alpha_echo")) as host:
        for tool in ("alpha_echo", "beta_echo"):
            assert (await host.try_call("/mcp", tool)).status == 200
        response = await host.try_call("/mine/mcp", "alpha_echo")
        told = await host.refused(response, 503)

    assert "'alpha_echo'" in told
    assert host.far["alpha"].visitors != []
