"""Command: `bridgehead serve`. Reads the settings, binds the port and serves."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Callable, Collection, Mapping

from bridgehead import __version__
from bridgehead.mcp.http.server import listen
from bridgehead.runtime import bridge_files, logs, plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import Manifest

from . import process, tls
from .auth.token_stores import open_tokens
from .ownership.owners import make_name
from .process import Job
from .registry import installed
from .setting_checks import check_prefix, find_problems, find_unused_settings
from .settings import HostSettings

log = logs.logger("host.settings")


_ANY_ADDRESS = ("0.0.0.0", "::", "[::]")  # noqa: S104 - to recognise them
_EXAMPLES = """\
All bridges, at http://localhost:3000/mcp; two, also at /aoc/mcp and so on; one of your own, in a file:
  bridgehead serve
  bridgehead serve aoc mercury
  bridgehead serve server.py

For a team, where everyone needs a token:
  bridgehead token add alice
  bridgehead serve --host 0.0.0.0

Everything else is a setting; `bridgehead doctor host` shows what is set.
"""


_INSTEAD_OF_WORKERS = (
    "To use several cores, run several replicas: start `bridgehead serve` once for each core, all with the "
    "same BRIDGEHEAD_REUSE_PORT=1, BRIDGEHEAD_REDIS_URL and BRIDGEHEAD_STATE_KEYS (docs/scale.md)."
)


def main(
    arguments: list[str],
    environment: Mapping[str, str],
    manifests: Callable[[Collection[str]], Mapping[str, Manifest]] = installed,
) -> int:
    """Serve until a signal ends it, and return the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    if vars(options).pop("workers") or environment.get("BRIDGEHEAD_WORKERS", "1") != "1":
        raise BridgeError("--workers and BRIDGEHEAD_WORKERS are gone.", next_step=_INSTEAD_OF_WORKERS)
    named: list[str] = vars(options).pop("bridge")  # an argument, not a setting: a path may contain a comma
    if named and options.bridges:
        command.error("name the bridges either as arguments or with --bridges")
    for target in named:
        try:
            bridge_files.find(target)
        except plugins.UnknownBridge:
            command.refuse(f"Unknown bridge {target!r}", target, plugins.names())
    settings = HostSettings.of(environment, **vars(options))
    settings.configure_logs()
    served = manifests(named or settings.bridges)
    # Read here too, to report a missing token or a broken file before the port is bound.
    tokens = open_tokens(settings)
    tls.certificate(settings)
    check_prefix(environment, settings, served)
    unused = map(str, find_unused_settings(environment, served))
    for problem in (*unused, *find_problems(environment, settings, served)):
        log.warn("a setting has no effect", problem=problem)
    if tokens and not settings.needs_auth:
        # In the log and not only for a terminal: behind a proxy on this machine, everyone may call.
        log.warn(
            "tokens are not enforced: every program on this machine may call",
            tokens=len(tokens),
            address=settings.shown_host,
            next_step="set BRIDGEHEAD_AUTH=on to require them",
        )
    if settings.reuse_port:
        _check_shared_port(served)
    with open_listener(settings, environment) as listening:
        job = Job(
            settings,
            served,
            environment,
            listening,
            state_keys=settings.derive_keys("request state"),
            peer_keys=settings.derive_keys("forwarding"),
            name=make_name(),
        )
        if sys.stderr.isatty():
            token = "" if settings.needs_auth else " --no-token"
            url = job.address
            here = ""
            if settings.host in _ANY_ADDRESS:  # where to listen, but nowhere to connect to
                url = url.replace(settings.shown_host, "localhost", 1)
                here = "From another machine, use this machine's name or address instead of localhost.\n"
            # Without names, `install` adds the built-in bridges; a bridge in a file has to be named.
            client, entry = "CLIENT", url
            if in_files := [name for name in served if name not in plugins.names()]:
                entry = f"{url}/{in_files[0]}/mcp --name {in_files[0]}"
            elif {*served} != {*plugins.built_in_names()}:
                client = " ".join(["CLIENT", *served])
            sys.stderr.write(
                f"Bridgehead {__version__} serves {', '.join(served)} at {url}/mcp\n"
                f"Connect a client: bridgehead install {client} --url {entry}{token}\n"
                f"Look at it:       {url}/\n"
                f"{here}"
                "Press Ctrl+C to stop.\n"
            )
        process.serve(job)
    return 0


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(
        prog="bridgehead serve", description="Serve bridges over HTTP, to a team.", epilog=_EXAMPLES
    )
    about = "their names, files or modules (default: the built-in ones)"
    bridges = command.add_argument("bridge", metavar="BRIDGE", nargs="*", help=about)
    completed_by(bridges, lambda *_: bridge_files.suggestions())
    command.add_argument("--host", help="the address to listen on (default: localhost)")
    command.add_argument("--port", help="the port (default: 3000; 0 chooses a free one)")
    about = "the same, separated by commas"
    completed_by(command.add_argument("--bridges", metavar="NAMES", help=about), lambda *_: plugins.names())
    command.add_argument("--workers", help=argparse.SUPPRESS)  # removed in 0.4; `main` names the replacement
    command.add_argument("--tls-cert", metavar="FILE", help="certificate chain, to serve https")
    command.add_argument("--tls-key", metavar="FILE", help="the certificate's key")
    # A string, not True: options go through the same parser as environment variables.
    command.add_argument(
        "--read-only", action="store_const", const="1", help="offer only tools that change nothing"
    )
    return command


_SYSTEMD_SOCKET = 3
"""The descriptor of the first socket that systemd passes (sd_listen_fds)."""


def open_listener(settings: HostSettings, environment: Mapping[str, str]) -> socket.socket:
    """Return systemd's listening socket if it passed one, otherwise bind the port.

    With systemd's socket no connection is lost in a restart: the kernel queues them meanwhile.
    """
    # LISTEN_PID must be this process: a child inherits the variables, but they are not meant for it.
    if environment.get("LISTEN_PID") == str(os.getpid()) and environment.get("LISTEN_FDS", "0") != "0":
        return socket.socket(fileno=_SYSTEMD_SOCKET)
    if settings.reuse_port and not hasattr(socket, "SO_REUSEPORT"):
        raise BridgeError(
            "This system cannot share a port between processes.", next_step="Unset BRIDGEHEAD_REUSE_PORT."
        )
    try:
        return listen(settings.host, settings.port, reuse_port=settings.reuse_port)
    except OSError as failure:
        raise BridgeError(
            f"Cannot listen on {settings.host}:{settings.port}: {failure.strerror or failure}.",
            next_step="Use another --port, or stop what uses this one.",
        ) from failure


def _check_shared_port(served: Mapping[str, Manifest]) -> None:
    """Refuse to share the port of a bridge that only one process can serve."""
    for name, manifest in served.items():
        if manifest.single_process:
            others = " ".join(other for other in served if other != name)
            leave_out = f"serve the others: bridgehead serve {others}; or unset" if others else "unset"
            raise BridgeError(
                f"{name} cannot share its port between processes: {manifest.single_process}",
                next_step=f"To go on, {leave_out} BRIDGEHEAD_REUSE_PORT.",
            )
