"""Fixtures of the mercury bridge's tests: a simulated API, and the bridge as a real process beside it.

Starting a process takes longer than most tests, so those of one module share one. A test that needs settings
of its own starts its own with `bridge_process`.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bridgehead.mercury.simulator import Simulator
from tests.mercury.process import BridgeProcess, bridge_process
from tests.support import mercury_journal


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_api() -> AsyncIterator[Simulator]:
    """A simulated API that any key opens and nothing delays."""
    async with Simulator() as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_client(
    shared_api: Simulator, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[BridgeProcess]:
    """A client of the bridge as a real process."""
    async with bridge_process(shared_api.url, tmp_path_factory.mktemp("bridge")) as one:
        await mercury_journal.until(shared_api.requests, lambda journal: journal.to("/models")[0].finished)
        yield one


@pytest.fixture
def api(shared_api: Simulator) -> Simulator:
    """The simulated API of this module, with nothing in its journal and no faults."""
    shared_api.requests.clear()
    shared_api.faults.clear()
    return shared_api


@pytest.fixture
def client(shared_client: BridgeProcess) -> BridgeProcess:
    """The client of this module, with nothing noticed yet."""
    shared_client.notifications.clear()
    return shared_client
