"""Settings: the environment variables of the bitburner bridge, their defaults and rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from msgspec import Struct

from bridgehead.runtime import directories
from bridgehead.runtime.directories import StateSettings
from bridgehead.runtime.logs import LogSettings
from bridgehead.runtime.settings import (
    BYTES,
    FLAG,
    PATH,
    WORDS,
    Kind,
    Setting,
    SettingError,
    whole,
)
from bridgehead.runtime.tool_filter import ALL_TOOLSETS, Toolsets, prefix_setting

if TYPE_CHECKING:
    from ssl import SSLContext

GAME_PORT = 12525
"""The port that tools for this game use by convention."""
NO_ORIGIN = "none"
ANY_ORIGIN = "*"
ANY_PORT = ":*"
OFF = "off"
_HIGHEST_PORT = 65535
_LOOPBACK = ("localhost", "::1")
_DIALLED = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound here
_DAY_MS = 86_400_000
_YES, _NO = True, False
ORIGINS: tuple[str, ...] = (
    "https://bitburner-official.github.io",
    "file://",
    NO_ORIGIN,
    "http://localhost:*",
    "https://localhost:*",
    "http://127.0.0.1:*",
    "https://127.0.0.1:*",
    "http://[::1]:*",
)
"""The origins of the game: the official page, the desktop build (a file, or no origin), this machine."""


class Address(Struct, frozen=True):
    """A host and a port."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in _LOOPBACK or self.host.startswith("127.")

    @property
    def near(self) -> Address:
        """The address to dial from this machine: loopback instead of an address for all interfaces."""
        return Address(_DIALLED.get(self.host, self.host), self.port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    number = int(port)
    if not host or not 0 <= number <= _HIGHEST_PORT:
        raise ValueError(text)
    return Address(host, number)


def _url(text: str) -> str | None:
    scheme, separator, rest = text.partition("://")
    if scheme.lower() not in ("ws", "wss") or not separator or not rest.strip("/"):
        raise ValueError(text)
    return text


def _origins(text: str) -> tuple[str, ...]:
    for word in (words := WORDS.parse(text)):
        if word in (ANY_ORIGIN, NO_ORIGIN, "null", "file://"):
            continue
        parts = urlsplit(word.removesuffix(ANY_PORT))
        rest = (parts.path.strip("/"), parts.query, parts.fragment, parts.username)
        # Reading `port` raises ValueError for one that is not a port.
        if not parts.scheme or not parts.hostname or any(rest) or parts.port == 0:
            raise ValueError(word)
    return words


def _folder(text: str) -> Path | str | None:
    return OFF if text.lower() == OFF else PATH.parse(text)


ADDRESS = Kind(_address, "an address such as 127.0.0.1:12525, or a port")
URL = Kind(_url, "a WebSocket address such as ws://127.0.0.1:12525")
ALLOWED_ORIGINS = Kind(
    _origins, "origins such as https://game.example or http://localhost:*, separated by commas, none or *"
)
FOLDER = Kind(_folder, "a path, or off")
TOOLSETS = Toolsets(
    "BITBURNER_TOOLSETS",
    {
        "edits": ("edit_file", "write_files", "move_file", "restore_file"),
        "search": ("search_files", "check_files", "get_file_metadata"),
        "servers": ("list_servers",),
        "saves": ("backup_save",),
        "apps": ("browse_files", "files_overview", "files_on_server", "files_ram"),
    },
)


class BitburnerSettings(StateSettings, LogSettings):
    """Everything that can be set for the bitburner bridge."""

    removed: ClassVar[tuple[str, ...]] = (
        "BITBURNER_BACKUP_MAX_BYTES",
        "BITBURNER_MAX_FRAME_BYTES",
        "BITBURNER_PING_INTERVAL_MS",
        "BITBURNER_PING_TIMEOUT_MS",
        "BITBURNER_SEARCH_MS",
    )

    listen = Setting(
        "BITBURNER_LISTEN", ADDRESS, Address("127.0.0.1", GAME_PORT), "The address that the game connects to."
    )
    allow_remote = Setting("BITBURNER_ALLOW_REMOTE", FLAG, _NO, "Let other machines reach BITBURNER_LISTEN.")
    rpc_url = Setting(
        "BITBURNER_RPC_URL",
        URL,
        None,
        "Connect to this address instead of listening: a relay, or a shared game.",
        secret=True,  # it may contain a password
    )
    allowed_origins = Setting(
        "BITBURNER_ALLOWED_ORIGINS",
        ALLOWED_ORIGINS,
        ORIGINS,
        "Origins of pages that may connect. `:*` is any port, `none` is no origin, `*` is all.",
    )
    tls_cert = Setting(
        "BITBURNER_TLS_CERT", PATH, None, "A certificate (PEM). The game then connects with `wss`."
    )
    tls_key = Setting(
        "BITBURNER_TLS_KEY", PATH, None, "The key of the certificate, if it is in a separate file."
    )
    connect_wait_ms = Setting(
        "BITBURNER_CONNECT_WAIT_MS",
        whole(0, _DAY_MS),
        2000,
        "How many milliseconds a call waits for a game to connect before it fails.",
    )
    rpc_timeout_ms = Setting(
        "RPC_TIMEOUT_MS", whole(1, _DAY_MS), 5000, "How many milliseconds the game may take to answer."
    )
    reconnect_base_ms = Setting(
        "RPC_RECONNECT_BASE_MS",
        whole(1, _DAY_MS),
        250,
        "The first delay between two attempts to connect, in milliseconds.",
    )
    reconnect_max_ms = Setting(
        "RPC_RECONNECT_MAX_MS",
        whole(1, _DAY_MS),
        10_000,
        "The longest delay between two attempts to connect, in milliseconds.",
    )
    reconnect_max_attempts = Setting(
        "RPC_RECONNECT_MAX_ATTEMPTS",
        whole(),
        0,
        "How many attempts to connect may fail in a row. 0 is no limit.",
    )
    write_max_bytes = Setting(
        "FILE_WRITE_MAX_BYTES", BYTES, 1_000_000, "The largest file that can be written, in UTF-8 bytes."
    )
    toolsets = Setting(
        TOOLSETS.variable,
        TOOLSETS.kind,
        (ALL_TOOLSETS,),
        "Groups of tools to offer besides those that read, write and delete files, look definitions up, "
        "tell RAM costs and the connection: edits, search, servers, saves, apps; `all`, or `core` for none "
        "of them.",
    )
    tool_prefix = prefix_setting("BITBURNER_TOOL_PREFIX", "bitburner_")
    read_only = Setting("BITBURNER_READ_ONLY", FLAG, _NO, "Offer no tools that write.")
    confirm_delete = Setting(
        "BITBURNER_CONFIRM_DELETE", FLAG, _YES, "Ask the user before a delete, if the client supports it."
    )
    refuse_stale_writes = Setting(
        "BITBURNER_REFUSE_STALE_WRITES",
        FLAG,
        _NO,
        "Refuse to replace or delete content that changed since the agent last read or wrote the file. "
        "Otherwise the agent is told what it replaced.",
    )
    backup_dir = Setting(
        "BITBURNER_BACKUP_DIR",
        FOLDER,
        None,
        "The directory for previous contents of files. `off` keeps none.",
        shown="`bitburner/backups` in the state directory",
    )
    backup_max_files = Setting(
        "BITBURNER_BACKUP_MAX_FILES",
        whole(1, 100_000),
        2000,
        "How many replaced contents to keep, and of how many files the last write.",
    )

    @property
    def shown_url(self) -> str:
        """The address that is dialled, without a user name and password."""
        scheme, _, rest = (self.rpc_url or "").partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}"

    @property
    def saves_folder(self) -> Path:
        """The folder of save files, which may not exist: inside BITBURNER_BACKUP_DIR if that is a path."""
        if isinstance(self.backup_dir, Path):
            return self.backup_dir / "saves"
        return directories.state_folder(self, "bitburner/saves")

    def check(self) -> None:
        """Refuse combinations of values that are invalid."""
        # Any page or machine that reaches the port can pose as a game, so opening it to others is explicit.
        if not (self.listen.is_loopback or self.allow_remote):
            wanted = "a loopback address such as 127.0.0.1:12525, unless BITBURNER_ALLOW_REMOTE is 1"
            raise SettingError("BITBURNER_LISTEN", str(self.listen), wanted)
        if self.reconnect_max_ms < self.reconnect_base_ms:
            wanted = f"at least RPC_RECONNECT_BASE_MS, which is {self.reconnect_base_ms}"
            raise SettingError("RPC_RECONNECT_MAX_MS", str(self.reconnect_max_ms), wanted)
        if self.tls_key is not None and self.tls_cert is None:
            raise SettingError("BITBURNER_TLS_KEY", str(self.tls_key), "left out without BITBURNER_TLS_CERT")
        # Raises now if the certificate cannot be used, not when a game connects.
        self.tls()

    def tls(self) -> SSLContext | None:
        """Return the context for `wss`; None for `ws`."""
        if self.tls_cert is None:
            return None
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as failure:
            wanted = f"a PEM file with a certificate and its key ({failure})"
            raise SettingError("BITBURNER_TLS_CERT", str(self.tls_cert), wanted) from None
        return context


__all__ = ["ADDRESS", "ANY_ORIGIN", "ANY_PORT", "NO_ORIGIN", "OFF", "Address", "BitburnerSettings"]
