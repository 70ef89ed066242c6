"""The settings of a run: a time limit, how children start, who runs which file, garbage."""

import gc
import signal
from typing import Any

import pytest

from tests.support import fork_server, time_limit
from tests.support.scheduling import FileScheduling


def pytest_configure(config: pytest.Config) -> None:
    # A background job ignores SIGINT, and one under nohup SIGHUP: so would every process that a test starts.
    # A handler is not inherited, and children begin with the default.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    time_limit.watch(config)
    server = fork_server.make()
    if server is not None:
        server.install()
        config.add_cleanup(server.end)
    # What collecting makes, stays: looking for garbage among it took 4 of 9 s of CPU time in each worker, and
    # then some more at every full collection of the tests.
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    return FileScheduling(config, log) if config.getvalue("dist") == "loadfile" else None
