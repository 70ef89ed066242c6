"""Settings of the aoc bridge: where puzzles and records are, and which event is served."""

# ruff: noqa: PTH100, PTH111, PTH112 - paths are strings here

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from bridgehead.runtime.directories import DatabaseSettings, StateSettings, open_state, user_config
from bridgehead.runtime.logs import LogSettings
from bridgehead.runtime.settings import PATH, TEXT, Kind, Setting, SettingError, choice, whole
from bridgehead.runtime.tool_filter import ALL_TOOLSETS, Toolsets, prefix_setting


def _folder(text: str) -> str | None:
    return os.path.abspath(os.path.expanduser(text))


FOLDER = Kind(_folder, "an existing folder")
TOOLSETS = Toolsets(
    "AOC_TOOLSETS",
    {
        "attempts": ("start_attempt", "read_input", "finish_attempt"),
        "ranking": ("speed_leaderboard", "leaderboard_cells", "leaderboard_runs"),
        "records": ("speed_history", "withdraw_record"),
        "solver": (),
    },
)


class AocSettings(LogSettings, DatabaseSettings, StateSettings):
    """All settings of the aoc bridge."""

    removed: ClassVar[tuple[str, ...]] = (
        "AOC_INSTRUCTIONS_DIR",
        "AOC_LOCK_WAIT_MS",
        "AOC_SITE_URL",
        "AOC_SPEEDS_DIR",
    )

    data_dir = Setting(
        "AOC_DATA_DIR",
        FOLDER,
        None,
        "The folder with `instructions/`, `speeds/` and `aliases.json`.",
        shown="the current directory if it has `instructions/` or `speeds/`, else the user's data directory",
    )
    year = Setting(
        "AOC_YEAR",
        whole(2015, 2099),
        2025,
        "The year to serve. Each year has a folder of that name in the data directory; 2025 may "
        "have its files at the top instead.",
    )
    record_keys = Setting(
        "AOC_RECORD_KEYS",
        choice("speedMs", "speed_ms"),
        "speedMs",
        "The key that new records use for their time. The original program reads `speed_ms`: set "
        "that if it uses the same folder.",
    )
    toolsets = Setting(
        TOOLSETS.variable,
        TOOLSETS.kind,
        (ALL_TOOLSETS,),
        "Groups of tools to offer besides fetch_instruction and record_speed: attempts, ranking, records; "
        "`all`, or `core` for none of them. `solver` alone offers the tools of an attempt and nothing else: "
        "nothing can be read before the clock runs.",
    )
    grade_key_file = Setting(
        "AOC_GRADE_KEY_FILE",
        PATH,
        None,
        "The file with the key that seals the grades of records in files. Servers that share a folder need "
        "the same one to trust each other's grades.",
        shown="`aoc/grade.key` in the state directory, made when it is first needed",
    )
    caller = Setting(
        "AOC_CALLER",
        TEXT,
        "",
        "Who calls over stdio. Processes with the same value are one caller when times are graded; without "
        "it, each process is a caller of its own.",
    )
    tool_prefix = prefix_setting("AOC_TOOL_PREFIX", "aoc_")
    contact = Setting(
        "AOC_CONTACT",
        TEXT,
        "",
        "How the site's maintainer can reach you, by e-mail for example. `bridgehead aoc fetch` needs it.",
    )
    session_file = Setting(
        "AOC_SESSION_FILE",
        PATH,
        None,
        "The file with your session cookie for `bridgehead aoc fetch`, readable by you alone.",
        shown="`aoc/session` in the user's configuration directory",
    )

    def check(self) -> None:
        """Refuse a configured folder that does not exist or is a file."""
        if self.data_dir is not None and not os.path.isdir(self.data_dir):
            raise SettingError("AOC_DATA_DIR", self.data_dir, FOLDER.wanted)


def find_session_file(settings: AocSettings) -> Path:
    """Return the path of the session cookie's file, which may not exist."""
    return settings.session_file or user_config("aoc/session")


def secret_paths(settings: AocSettings) -> tuple[Path, ...]:
    """Return the paths that no sandboxed program may read: keys, tokens and the cookie."""
    keys = () if settings.grade_key_file is None else (settings.grade_key_file,)
    return (open_state(settings, "aoc").parent, *keys, find_session_file(settings))
