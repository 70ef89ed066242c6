"""Token command: `bridgehead token add|list|revoke`. A running host notices changes by itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from bridgehead.runtime import bridge_files, plugins
from bridgehead.runtime.command_line import Parser, completed_by, number
from bridgehead.runtime.errors import BridgeError, InvalidArgument
from bridgehead.runtime.timing import Clock, SystemClock

from ..settings import HostSettings
from .token_stores import announced_tokens, token_store
from .tokens import NO_BRIDGE, Token, TokenStore, create_token

_EXAMPLES = """\
examples:
  bridgehead token add alice
  bridgehead token add ci --bridges aoc --read-only --per-minute 600 --days 90
  bridgehead token add prometheus --bridges none --metrics
  bridgehead token list
  bridgehead token revoke alice
"""
_HOW_TO_USE = """\
Its user sets BRIDGEHEAD_TOKEN to it in the environment of their client, and runs
  bridgehead install CLIENT --url https://ADDRESS
A request by hand carries the header `Authorization: Bearer TOKEN`.
"""
_RIGHTS = ("metrics", "events", "dashboard", "admin")
_DAY = timedelta(days=1).total_seconds()
MAX_DAYS = 36_500
"""A century; dates end in the year 9999."""
MAX_PER_MINUTE = 1_000_000


def main(arguments: list[str], environment: Mapping[str, str], clock: Clock | None = None) -> int:
    """Add, list or revoke tokens; return the exit status."""
    options = parser().parse_args(arguments)
    store = announced_tokens(HostSettings(environment))
    now = (clock or SystemClock()).now()
    if options.act == "add":
        _add(store, options, now)
    elif options.act == "revoke":
        revoked = store.revoke(options.name)
        _print(f"The token of {revoked.name} is revoked. A running host stops accepting it within a second.")
    else:
        _list(store.read().tokens, store.merge_uses({}), now, as_json=options.json)
    return 0


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(
        prog="bridgehead token",
        description="Manage the tokens of clients that may use bridgehead serve.",
        epilog=_EXAMPLES,
    )
    acts = command.add_subparsers(dest="act", required=True, metavar="add|list|revoke")
    add = acts.add_parser("add", help="make a token; it is shown once")
    add.add_argument("name", help="the client's name in limits, logs and usage")
    about = "only these bridges, separated by commas (default: all)"
    completed_by(add.add_argument("--bridges", metavar="NAMES", help=about), lambda *_: plugins.names())
    add.add_argument("--read-only", action="store_true", help="only tools that change nothing")
    add.add_argument("--may-spend", action="store_true", help="with --read-only: also tools that cost money")
    add.add_argument("--metrics", action="store_true", help="may also read /metrics")
    add.add_argument("--events", action="store_true", help="may also read /events, the stream of events")
    add.add_argument("--dashboard", action="store_true", help="may also view the dashboard at /")
    add.add_argument("--admin", action="store_true", help="may also revoke tokens and end sessions there")
    add.add_argument(
        "--per-minute",
        type=number(int, 0, MAX_PER_MINUTE),
        default=0,
        metavar="N",
        help="requests per minute (default: no limit)",
    )
    add.add_argument(
        "--days", type=number(float, 0, MAX_DAYS), metavar="N", help="days until it expires (default: never)"
    )
    listing = acts.add_parser("list", help="show all tokens, without their secrets")
    listing.add_argument("--json", action="store_true", help="as JSON")
    revoke = acts.add_parser("revoke", help="revoke a token")
    completed_by(revoke.add_argument("name", help="the client's name"), _names)
    return command


def _names(_before: list[str], environment: Mapping[str, str]) -> list[str]:
    try:
        return [token.name for token in token_store(HostSettings(environment)).read().tokens]
    except BridgeError:  # completion has nowhere to show an error
        return []


def _add(store: TokenStore, options: argparse.Namespace, now: float) -> None:
    words = tuple(name.strip() for name in (options.bridges or "").split(",") if name.strip())
    if options.bridges is not None and not words:  # `--bridges "$UNSET"` must not mean all
        raise InvalidArgument("--bridges names no bridge.", next_step="Leave it out for all bridges.")
    known = (*plugins.names(), NO_BRIDGE)
    bridges: tuple[str, ...] = ()
    for name in words:
        if bridge_files.is_file(name):  # the name under which `bridgehead serve` serves its bridge
            bridges += (bridge_files.load(name).name,)
        elif name in known:
            bridges += (name,)
        else:
            raise InvalidArgument(f"Unknown bridge {name!r}.", next_step=f"Available: {', '.join(known)}.")
    token, secret = create_token(
        options.name,
        now,
        bridges=bridges,
        read_only=options.read_only,
        metrics=options.metrics,
        events=options.events,
        dashboard=options.dashboard,
        admin=options.admin,
        may_spend=options.may_spend,
        per_minute=options.per_minute,
        expires=None if options.days is None else now + options.days * _DAY,
    )
    store.add(token)
    # Only the token goes to standard output, so that a script can take it.
    sys.stderr.write(f"The token of {token.name}, shown this once; the file holds only its hash:\n")
    _print(secret)
    sys.stderr.write(_HOW_TO_USE)


def _list(tokens: tuple[Token, ...], uses: Mapping[str, float], now: float, *, as_json: bool) -> None:
    if as_json:
        import msgspec

        shown = [
            {k: v for k, v in msgspec.to_builtins(token).items() if k not in {"hash", "id"}}
            | {"last_used": uses.get(token.id)}
            for token in tokens
        ]
        _print(msgspec.json.format(msgspec.json.encode(shown)).decode())
        return
    if not tokens:
        _print("There are no tokens. Make one with bridgehead token add NAME.")
        return
    heads = ("NAME", "BRIDGES", "MAY", "A MINUTE", "CREATED", "LAST USED", "EXPIRES")
    rows = [heads, *(_row(token, uses.get(token.id), now) for token in tokens)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        _print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(token: Token, used: float | None, now: float) -> tuple[str, ...]:
    may = ("read, spend" if token.may_spend else "read") if token.read_only else "everything"
    expires = "never" if token.expires is None else _day(token.expires)
    if token.expires is not None and token.expires <= now:
        expires += " (expired)"
    return (
        token.name,
        ",".join(token.bridges) or "all",
        ", ".join([may, *(what for what in _RIGHTS if getattr(token, what))]),
        str(token.per_minute or "no limit"),
        _day(token.created),
        "none recorded" if used is None else f"{datetime.fromtimestamp(used, UTC):%Y-%m-%d %H:%M}",
        expires,
    )


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
