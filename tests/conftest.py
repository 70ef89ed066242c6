"""For all tests: the settings of the run, output that xdist can carry, servers."""

import sys
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from bridgehead.mcp.process import LoopFactory, new_loop
from tests.support.pgbouncer import bouncing, pooled
from tests.support.postgres_server import PostgresServer, running, shared
from tests.support.redis_server import RedisServer, shared_redis
from tests.support.run_settings import (  # noqa: F401 - hooks of pytest, found by their names
    pytest_collection_finish,
    pytest_configure,
    pytest_xdist_make_scheduler,
)
from tests.windows import skipped

# Both measure how busy the machine is.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if sys.platform == "win32":
        for item in items:
            reason = skipped.reason_for(item.nodeid, getattr(item, "fixturenames", []))
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


if sys.platform == "win32":

    def pytest_asyncio_loop_factories() -> dict[str, LoopFactory]:
        """Run tests on the loop that the product runs on there."""
        return {"windows": new_loop}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write out what UTF-8 cannot carry, such as half of a surrogate pair in a logged message."""
    report = yield
    report.sections = [(title, _carried(text)) for title, text in report.sections]
    return report


def _carried(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL that tests share and do not break."""
    with shared(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def breakable_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that a test may kill."""
    with running() as server:
        yield server


@pytest.fixture
def database_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database."""
    with postgres_server.lend_database() as url:
        yield url


@pytest.fixture
def pooled_url(database_url: str, postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database behind a PgBouncer in transaction mode."""
    with bouncing(postgres_server) as port:
        yield pooled(database_url, postgres_server, port)


@pytest.fixture(scope="session")
def _redis_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with shared_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_server(_redis_for_all: RedisServer) -> RedisServer:
    """Give a Redis with nothing in it; a test that breaks it starts one of its own."""
    _redis_for_all.command("FLUSHALL")
    return _redis_for_all
