"""A real PgBouncer in transaction mode for tests: two connections to a server for everybody who asks.

So the statements of one client go over connections that others use in between, and whatever belongs to a
connection alone breaks: a prepared statement, a setting, LISTEN.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.posix import dying_with_us
from tests.support.postgres_server import USER, PostgresServer, other_user
from tests.support.redis_server import wait_until
from tests.support.tcp import is_listening
from tests.support.waiting import PATIENCE

_SETTINGS = """\
[databases]
* = host=127.0.0.1 port={server} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
"""


def need_program() -> str:
    """Find the program, or skip; `make stores` needs it, and skips nothing."""
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None and "BRIDGEHEAD_STORES" not in os.environ:
        pytest.skip("pgbouncer is not installed: it is Debian's package of that name")
    assert found is not None, "pgbouncer is not installed"
    return found


@contextmanager
def bouncing(server: PostgresServer) -> Iterator[int]:
    """Run a bouncer in front of a server, and give its port."""
    program, port, owner = need_program(), free_port(), other_user()  # it refuses to be root, as the server
    with tempfile.TemporaryDirectory(prefix="bridgehead-pgbouncer-") as folder:
        Path(folder).chmod(0o755)
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(_SETTINGS.format(server=server.port, user=USER, port=port))
        command = [*dying_with_us("TERM"), program, "--quiet", str(settings)]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **owner)
        try:
            wait_until(lambda: is_listening(port) or process.poll() is not None)
            assert process.poll() is None, (Path(folder) / "log").read_text()
            yield port
        finally:
            process.terminate()
            process.wait(PATIENCE)


def pooled(url: str, server: PostgresServer, port: int) -> str:
    """Return the address of a database through a bouncer."""
    return f"{url.replace(f':{server.port}/', f':{port}/')}?statement_cache_size=0"
