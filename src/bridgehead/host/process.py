"""Process: serves bridges over HTTP until a signal ends it, alone or as one of several replicas."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from bridgehead.mcp import run_to_end, shutdown_signals, socket_loop
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.http.memory import resident_bytes
from bridgehead.mcp.http.message import Handler
from bridgehead.mcp.http.server import Server
from bridgehead.runtime import logs
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.timing import SystemClock

from . import tls
from .app import HostApplication
from .factory import ApplicationFactory, limits_of
from .ownership.forwarding import PeerEndpoint, Peers
from .ownership.owners import Owners, bind_peer_socket, own_address
from .ownership.routing import OwnerRouter
from .replicas.replica import Replica, open_replica
from .settings import HostSettings
from .systemd import ALIVE, READY, STOPPING, ServiceManager
from .telemetry.exporting import open_telemetry
from .watchdog import Watchdog

RENEW_SECONDS = 60.0
"""How often the certificate's file is checked for a new one."""

_YOUNG_OBJECTS = 10_000
"""Allocations between two collections of the youngest generation; Python's default is 700."""

_SWITCH_SECONDS = 0.0005
"""How long a thread that computes keeps the interpreter while others want it; Python's default is 5 ms.

A thread that returns from a slow system call waits that long for each computing thread. Thirty writes with
fsync beside two such threads took 290 to 430 ms, and take 30 to 140 ms now.
"""

_M_MMAP_THRESHOLD = -3
"""glibc: blocks from this size on are mapped, each on its own."""
_LARGE_BLOCK = 128 * 1024
_WATCH_SECONDS = 2.0
_MACOS_FILES = (245_760, 122_880, 61_440, 24_576, 10_240)
"""Limits of open files to try on macOS, where the hard limit is unlimited and setting that fails."""

log = logs.logger("host")


class Job(Struct, frozen=True):
    """What a process serves, where, and the keys that it shares with other replicas."""

    settings: HostSettings
    manifests: Mapping[str, Manifest]
    environment: Mapping[str, str]
    listening: socket.socket
    state_keys: tuple[bytes, ...]
    """Seal the state that clients carry between two requests."""
    peer_keys: tuple[bytes, ...]
    """Sign the requests that processes forward to each other."""
    name: str
    """The name of the process, which the ids of sessions and tasks begin with."""

    @property
    def address(self) -> str:
        """The address that is served, as a client would write it."""
        scheme = "https" if self.settings.tls_cert else "http"
        return f"{scheme}://{self.settings.shown_host}:{self.listening.getsockname()[1]}"


def serve(job: Job) -> None:
    """Serve until a signal ends it."""
    settings = job.settings
    _raise_file_limit()
    _return_large_blocks()
    _ignore_signals()
    telemetry = open_telemetry(job.environment)
    certificate = tls.certificate(settings)
    replica = open_replica(settings)
    peers = _make_peers(job, replica)
    app = ApplicationFactory(
        settings,
        job.manifests,
        job.environment,
        SystemClock(),
        limits=limits_of(settings),
        state_keys=job.state_keys,
        telemetry=telemetry,
        peers=peers,
        certificate=certificate,
        replica=replica,
    ).make()
    run_to_end(_serve(job, app, peers, certificate), socket_loop, settings.shutdown_seconds)
    if telemetry is not None:
        telemetry.close()
    log.info("ended")


def _make_peers(job: Job, replica: Replica | None) -> Peers | None:
    """Make the client for the other replicas; None if this process shares no sessions and tasks."""
    # Without keys from the settings each process signs with random ones, which no other knows.
    if replica is None or not job.settings.state_keys:
        return None
    return Peers(Owners(job.name, replica.redis, job.peer_keys), job.peer_keys)


async def _serve(
    job: Job,
    app: HostApplication,
    peers: Peers | None,
    certificate: tls.Certificate | None,
) -> None:
    # Handlers come first: a supervisor may signal as soon as it has read the first line of the log.
    with shutdown_signals(job.settings.shutdown_seconds) as end_requested:
        _handle_other_signals(app)  # after `shutdown_signals`, which also takes SIGHUP
        await app.start()
        handler: Handler = app
        inner = None
        if peers is not None:
            limits = limits_of(job.settings)
            handler = OwnerRouter(app, peers, limits)
            listening = bind_peer_socket(job.settings)
            inner = _server(
                job, app, PeerEndpoint(peers, app, app.own_answers, app.record_early_rejection, limits)
            )
            await inner.start(listening)
            await peers.owners.announce(own_address(job.settings, listening))
        server = _server(job, app, handler)
        watchdog = Watchdog(app.metrics.blocked.add)
        manager = ServiceManager(job.environment)
        beating = asyncio.create_task(_beat(manager))
        await server.start(job.listening, None if certificate is None else certificate.context)
        manager.notify(READY)
        watchdog.start()
        watching = asyncio.create_task(_watch_memory(app.accounts))
        _freeze_loaded_modules()
        sys.setswitchinterval(_SWITCH_SECONDS)
        auth = "on" if job.settings.needs_auth else "off"
        log.info("serving", url=f"{job.address}/mcp", bridges=list(job.manifests), auth=auth)
        while not await _within(RENEW_SECONDS, end_requested):
            if certificate is not None:
                certificate.renew()
        manager.notify(STOPPING)
        if job.settings.drain_seconds:
            app.pages.is_ending = True
            log.info("draining", seconds=job.settings.drain_seconds)
            await asyncio.sleep(job.settings.drain_seconds)
        log.info("ending")
        watchdog.stop()
        # Readiness fails first. The peer socket closes last: other processes may still forward requests here.
        app.end_streams()
        server.stop_accepting()
        await server.stop()
        if inner is not None and peers is not None:
            await peers.owners.withdraw()
            await inner.stop()
            await peers.close()
        await app.stop()
        beating.cancel()
        watching.cancel()


def _handle_other_signals(app: HostApplication) -> None:
    """Reload on SIGHUP; end gracefully on SIGQUIT as on SIGTERM."""
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, AttributeError):  # not on Windows
        loop.add_signal_handler(signal.SIGHUP, app.reload)
        loop.add_signal_handler(signal.SIGQUIT, signal.raise_signal, signal.SIGTERM)


def _ignore_signals() -> None:
    """Ignore SIGUSR1 and SIGUSR2, which log rotation and others send."""
    for name in ("SIGUSR1", "SIGUSR2"):
        if hasattr(signal, name):  # not on Windows
            signal.signal(getattr(signal, name), signal.SIG_IGN)


async def _beat(manager: ServiceManager) -> None:
    """Send heartbeats to systemd from the event loop: a blocked loop sends none, and is restarted."""
    while manager.watchdog_seconds:
        await asyncio.sleep(manager.watchdog_seconds / 3)
        manager.notify(ALIVE)


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Wait for an event at most this long; return whether it came."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _server(job: Job, app: HostApplication, handler: Handler) -> Server:
    return Server(
        handler,
        max_connections=job.settings.connections,
        max_per_address=job.settings.connections_per_address,
        unlimited=app.proxies,
        by_address=app.metrics.connections,
        keep_alive_seconds=job.settings.idle_seconds,
        shutdown_seconds=job.settings.shutdown_seconds,
        on_reject=app.record_early_rejection,
        unread=app.accounts,
    )


def _raise_file_limit() -> None:
    """Raise the limit of open files: each connection is one."""
    with suppress(ImportError):
        import resource  # not on Windows, which has no such limit

        raise_file_limit(resource)


def raise_file_limit(resource: Any) -> None:
    """Raise the soft limit of open files to the hard one, or to the highest value that is accepted."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, *_MACOS_FILES):
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            return


def _return_large_blocks() -> None:
    """Let glibc give the memory of large bodies and answers back to the system as soon as they are freed.

    By default it raises its mmap threshold with each large block that is freed and keeps the next ones, which
    small blocks between them then pin: after 300 bodies of 1 MB, 280 MB stayed with the process.
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # another C library, or Windows
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)


async def _watch_memory(accounts: Accounts) -> None:
    """Compare the memory of the process with its limit, and let glibc give freed memory back.

    Below `_LARGE_BLOCK`, glibc keeps the free pages between blocks that are in use: 14 to 26 MB after each
    burst of large calls.
    """
    import ctypes

    trim = None
    with suppress(AttributeError, OSError, TypeError):  # another C library, or Windows
        trim = ctypes.CDLL(None).malloc_trim
    last = 0
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        accounts.check_memory()  # includes memory that no caller is charged for, such as the frames of a game
        if trim is not None and resident_bytes() != last:  # an idle process is left alone
            # In a thread, without the interpreter: about 1.5 ms, and 10 ms if there is much to return.
            await asyncio.to_thread(trim, 0)
            last = resident_bytes()


def _freeze_loaded_modules() -> None:
    """Exclude loaded modules from garbage collection: scanning them stops every client for 50 ms.

    The youngest generation is larger too. Requests make few cycles, so collecting less often costs little
    memory, and a thousand clients that connect at once do not trigger one collection after the other.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
