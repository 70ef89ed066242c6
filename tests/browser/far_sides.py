"""Far sides for the pages: invented records, a simulated game and API, all behind `bridgehead serve`."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.interop.node import node
from tests.interop.oauth import identity_server
from tests.interop.server_process import listening
from tests.support.ports import free_port

HOSTILE = "<img src=x onerror=alert(1)>"
MODELS = {
    "clever-fox-4.5": 1.0,
    "quick-otter": 1.16,
    "brave-badger-mini": 1.8,
    "calm-crane-2026-05-preview-with-a-long-name": 2.6,
    "patient-heron": 9.0,
    HOSTILE: 4.0,
}
DAYS = 6
RUNS = 7


def write_records(folder: Path) -> None:
    """Invent runs of a few models on a few days, the same each time."""
    chance = random.Random(7)  # noqa: S311 - the same picture each time
    speeds, puzzles = folder / "speeds", folder / "instructions"
    speeds.mkdir(parents=True)
    puzzles.mkdir()
    for day in range(1, DAYS + 1):
        (puzzles / f"Day{day:02}_phase1.md").write_text(f"# Day {day}\n\nCount the lights.\n")
        entries = [
            {
                "llm": llm,
                "phase": phase,
                "speedMs": round(26_000 * (1 + day / 3) * phase * factor * chance.lognormvariate(0, 0.25)),
                "timestamp": f"2025-12-{day:02}T{8 + run:02}:{chance.randrange(60):02}:00.000Z",
                "source": "claimed" if run % 3 == 0 else "measured",
            }
            for phase in (1, 2)
            for llm, factor in MODELS.items()
            for run in range(RUNS if llm != "patient-heron" else 2)
            if not (llm == HOSTILE and day > 2)
        ]
        (speeds / f"day{day:02}.json").write_text(json.dumps({"day": day, "entries": entries}))


def write_game_files(folder: Path) -> None:
    """Invent the scripts of a player."""
    for name, content in {
        "hack.js": "/** @param {NS} ns */\nexport async function main(ns) {\n  const target = ns.args[0];\n"
        "  while (true) {\n    await ns.weaken(target);\n    await ns.hack(target);\n  }\n}\n",
        "lib/targets.js": "export const targets = ['n00dles', 'foodnstuff', 'joesguns'];\n",
        "lib/a/very/deep/folder/with-a-file-whose-name-is-longer-than-most-columns-are-wide.js": "// deep\n",
        "notes.txt": f"Remember {HOSTILE}\n<script>alert(2)</script>\n",
        "watcher.js": "export async function main(ns) {\n  ns.disableLog('ALL');\n  ns.tail();\n}\n",
        **{
            f"gen/script{number:03}.js": "export async function main(ns) { ns.tprint(1); }\n"
            * (1 + number % 9)
            for number in range(1000)
        },
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@contextmanager
def serve_guarded(home: Path, settings: dict[str, str]) -> Iterator[dict[str, str]]:
    """Serve one bridge to those who have a token; give those of one who may look and one who may act."""
    port, program = free_port(), [sys.executable, "-m", "bridgehead"]
    own = {**settings, "BRIDGEHEAD_STATE_DIR": str(home / "guarded"), "BRIDGEHEAD_AUTH": "on"}
    tokens = {
        name: subprocess.run(
            [*program, "token", "add", name, *options], env=os.environ | own, capture_output=True, check=True
        )
        .stdout.decode()
        .strip()
        for name, options in {"looker": ["--dashboard"], "boss": ["--admin"], "robot": []}.items()
    }
    command = [*program, "serve", "--bridges", "aoc", "--port", str(port)]
    with listening(command, port, own) as server:
        yield {"guarded": server, **tokens}


@contextmanager
def serve_behind_issuer(home: Path, settings: dict[str, str]) -> Iterator[dict[str, str]]:
    """Serve one bridge to those who sign in at an identity server, which is another site than the host's."""
    port = free_port()
    address = f"http://localhost:{port}"
    with identity_server(node(), f"{address}/dashboard/oauth/callback", "asks") as issuer:
        own = {
            **settings,
            "BRIDGEHEAD_STATE_DIR": str(home / "behind"),
            "BRIDGEHEAD_OAUTH_ISSUER": issuer,
            "BRIDGEHEAD_OAUTH_AUDIENCE": f"{address}/mcp",
            "BRIDGEHEAD_OAUTH_CLIENT_ID": "dashboard",
            "BRIDGEHEAD_PUBLIC_URL": address,
        }
        command = [sys.executable, "-m", "bridgehead", "serve", "--bridges", "aoc", "--port", str(port)]
        with listening(command, port, own):
            yield {"behind": address, "issuer": issuer}


@contextmanager
def served(home: Path) -> Iterator[dict[str, str]]:
    """Run everything, and give what the checks need to know of it."""
    records, files, empty = home / "aoc", home / "files", home / "empty"
    write_records(records)
    write_game_files(files)
    empty.mkdir()
    game, api, port, bare = (free_port() for _ in range(4))
    program = [sys.executable, "-m", "bridgehead"]
    settings = {
        "AOC_DATA_DIR": str(records),
        "BITBURNER_LISTEN": f"127.0.0.1:{game}",
        "BRIDGEHEAD_STATE_DIR": str(home / "state"),
        "MERCURY_API_KEY": "sk_0123456789abcdef",
        "MERCURY_API_URL": f"http://127.0.0.1:{api}/v1",
        "LOG_LEVEL": "error",
        "RATE_LIMIT_MAX": "1000",  # pictures make more than the default of 100 calls a minute
    }
    lonely = {
        **settings,
        "AOC_DATA_DIR": str(empty),
        "BITBURNER_LISTEN": f"127.0.0.1:{free_port()}",
        "BRIDGEHEAD_STATE_DIR": str(home / "other"),
    }
    with ExitStack() as stack:
        stack.enter_context(
            listening([*program, "mercury", "simulate", "--port", str(api), "--delay-ms", "400"], api)
        )
        server = stack.enter_context(listening([*program, "serve", "--port", str(port)], port, settings))
        other = stack.enter_context(listening([*program, "serve", "--port", str(bare)], bare, lonely))
        guarded = stack.enter_context(serve_guarded(home, settings))
        behind = stack.enter_context(serve_behind_issuer(home, settings))
        yield {
            **guarded,
            **behind,
            "server": server,
            "bare": other,
            "game": json.dumps(
                [*program, "bitburner", "simulate", "--url", f"ws://127.0.0.1:{game}", "--files", str(files)]
            ),
        }
