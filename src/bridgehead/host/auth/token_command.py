"""Token command: `bridgehead token add|set|rotate|list|revoke`. A running host notices changes by itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from bridgehead.runtime import bridge_files, plugins
from bridgehead.runtime.command_line import Parser, completed_by, number
from bridgehead.runtime.errors import BridgeError, InvalidArgument
from bridgehead.runtime.timing import Clock, SystemClock

from ..settings import HostSettings
from .token_stores import announced_tokens, token_store
from .tokens import NO_BRIDGE, Token, TokenStore, create_token, rotate_token

_EXAMPLES = """\
examples:
  bridgehead token add alice
  bridgehead token add ci --bridges aoc --read-only --per-minute 600 --days 90
  bridgehead token add prometheus --bridges none --metrics
  bridgehead token add reader --tools 'aoc_*,bitburner_read_*'
  bridgehead token set ci --per-minute 1200 --days 365
  bridgehead token rotate ci --overlap 1d
  bridgehead token list
  bridgehead token revoke alice
"""
_HOW_TO_USE = """\
Its user sets BRIDGEHEAD_TOKEN to it in the environment of their client, and runs
  bridgehead install CLIENT --url https://ADDRESS
A request by hand carries the header `Authorization: Bearer TOKEN`.
"""
_WRITABLE_RIGHTS = ("read_only", "may_spend", "metrics", "events", "dashboard", "admin")
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
    elif options.act == "set":
        _set(store, options, now)
    elif options.act == "rotate":
        _rotate(store, options, now)
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
    acts = command.add_subparsers(dest="act", required=True, metavar="add|set|rotate|list|revoke")
    add = acts.add_parser("add", help="make a token; it is shown once", example="add alice --days 90")
    add.add_argument("name", help="the client's name in limits, logs and usage")
    _take_rights(add, action="store_true")
    change = acts.add_parser(
        "set",
        help="change the limits, rights, bridges or expiry of a token",
        example="set alice --per-minute 60",
    )
    completed_by(change.add_argument("name", help="the client's name"), _names)
    # --read-only and --no-read-only; what is not given stays.
    _take_rights(change, action=argparse.BooleanOptionalAction, default=None)
    change.add_argument("--never-expires", action="store_true", help="remove the expiry")
    rotate = acts.add_parser(
        "rotate", help="give a token a new secret; it is shown once", example="rotate alice --overlap 1d"
    )
    completed_by(rotate.add_argument("name", help="the client's name"), _names)
    rotate.add_argument(
        "--overlap",
        type=_read_overlap,
        default=0.0,
        metavar="TIME",
        help="how long the old secret still works: 30m, 12h, 1d (default: not at all)",
    )
    listing = acts.add_parser("list", help="show all tokens, without their secrets")
    listing.add_argument("--json", action="store_true", help="as JSON")
    revoke = acts.add_parser("revoke", help="revoke a token", example="revoke alice")
    completed_by(revoke.add_argument("name", help="the client's name"), _names)
    return command


def _names(_before: list[str], environment: Mapping[str, str]) -> list[str]:
    try:
        return [token.name for token in token_store(HostSettings(environment)).read().tokens]
    except BridgeError:  # completion has nowhere to show an error
        return []


def _take_rights(command: argparse.ArgumentParser, **flag: Any) -> None:
    """Add the options for what a token opens; `flag` says how a right is given."""
    about = "only these bridges, separated by commas (default: all)"
    completed_by(command.add_argument("--bridges", metavar="NAMES", help=about), lambda *_: plugins.names())
    about = "only tools that match these patterns, separated by commas, such as 'aoc_*' (default: all)"
    command.add_argument("--tools", metavar="PATTERNS", help=about)
    command.add_argument("--read-only", help="only tools that change nothing", **flag)
    command.add_argument("--may-spend", help="with --read-only: also tools that cost money", **flag)
    command.add_argument("--metrics", help="may also read /metrics", **flag)
    command.add_argument("--events", help="may also read /events, the stream of events", **flag)
    command.add_argument("--dashboard", help="may also view the dashboard at /", **flag)
    command.add_argument("--admin", help="may also revoke tokens and end sessions there", **flag)
    command.add_argument(
        "--per-minute",
        type=number(int, 0, MAX_PER_MINUTE),
        metavar="N",
        help="requests per minute; 0 is no limit (default: no limit)",
    )
    command.add_argument(
        "--days", type=number(float, 0, MAX_DAYS), metavar="N", help="days until it expires (default: never)"
    )


_UNITS = {"m": 60.0, "h": 3600.0, "d": _DAY}


def _read_overlap(text: str) -> float:
    count, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not count.isascii() or not count.isdigit() or len(count) > len("99999"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 30m, 12h or 1d")
    return min(int(count) * _UNITS[unit], MAX_DAYS * _DAY)


def _read_list(text: str, option: str) -> tuple[str, ...]:
    words = tuple(name.strip() for name in text.split(",") if name.strip())
    if not words:  # `--bridges "$UNSET"` must not mean all
        raise InvalidArgument(f"{option} names nothing.", next_step="Leave it out, or write '*' for all.")
    return words if words != ("*",) else ()


def _read_bridges(text: str) -> tuple[str, ...]:
    known = (*plugins.names(), NO_BRIDGE)
    bridges: tuple[str, ...] = ()
    for name in _read_list(text, "--bridges"):
        if bridge_files.is_file(name):  # the name under which `bridgehead serve` serves its bridge
            bridges += (bridge_files.load(name).name,)
        elif name in known:
            bridges += (name,)
        else:
            raise InvalidArgument(f"Unknown bridge {name!r}.", next_step=f"Available: {', '.join(known)}.")
    return bridges


def _read_rights(options: argparse.Namespace, now: float) -> dict[str, Any]:
    """Return the fields of a token that the options name."""
    fields: dict[str, Any] = {
        name: getattr(options, name) for name in _WRITABLE_RIGHTS if getattr(options, name) is not None
    }
    if options.bridges is not None:
        fields["bridges"] = _read_bridges(options.bridges)
    if options.tools is not None:
        fields["tools"] = _read_list(options.tools, "--tools")
    if options.per_minute is not None:
        fields["per_minute"] = options.per_minute
    if options.days is not None:
        fields["expires"] = now + options.days * _DAY
    return fields


def _add(store: TokenStore, options: argparse.Namespace, now: float) -> None:
    token, secret = create_token(options.name, now, **_read_rights(options, now))
    store.add(token)
    _show(token, secret)


def _show(token: Token, secret: str) -> None:
    # Only the token goes to standard output, so that a script can take it.
    sys.stderr.write(f"The token of {token.name}, shown this once; the file holds only its hash:\n")
    _print(secret)
    sys.stderr.write(_HOW_TO_USE)


def _set(store: TokenStore, options: argparse.Namespace, now: float) -> None:
    fields = _read_rights(options, now)
    if options.never_expires:
        fields["expires"] = None
    if not fields:
        raise InvalidArgument("Nothing to change.", next_step="Name an option, such as --per-minute 600.")
    changed = store.change(options.name, lambda token: replace(token, **fields))
    _print(f"The token of {changed.name} is changed. A running host notices within a second.")
    _list((changed,), {}, now, as_json=False)


def _rotate(store: TokenStore, options: argparse.Namespace, now: float) -> None:
    secret = ""

    def rotate(token: Token) -> Token:
        nonlocal secret
        entry, secret = rotate_token(token, now, options.overlap)
        return entry

    rotated = store.change(options.name, rotate)
    if options.overlap:
        until = f"{datetime.fromtimestamp(rotated.old_until, UTC):%Y-%m-%d %H:%M} UTC"
        sys.stderr.write(f"The old secret works until {until}.\n")
    else:
        sys.stderr.write("The old secret stops working within a second.\n")
    _show(rotated, secret)


def _list(tokens: tuple[Token, ...], uses: Mapping[str, float], now: float, *, as_json: bool) -> None:
    if as_json:
        import msgspec

        shown = [
            {k: v for k, v in msgspec.to_builtins(token).items() if k not in {"hash", "old_hash", "id"}}
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
        ", ".join([may, *(what for what in _RIGHTS if getattr(token, what))])
        + (f" ({','.join(token.tools)})" if token.tools else ""),
        str(token.per_minute or "no limit"),
        _day(token.created),
        "none recorded" if used is None else f"{datetime.fromtimestamp(used, UTC):%Y-%m-%d %H:%M}",
        expires,
    )


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
