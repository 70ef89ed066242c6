"""The worst arguments that each tool of each bridge accepts: what takes the most work or memory for a call.

A tool without an entry fails `tests/host/test_worst.py` and `make worst`. An entry is a list: one call after
the other, in turns.
"""

from typing import Any

Arguments = dict[str, Any]

LONG_LINE = "ab" * 450_000
"""The file `long-line.js`."""
SCRIPTS = 150
"""The files `scripts/NNN.js`, each of a hundred lines."""
RING = 100
"""Those of them that import each other in a circle, from number 1 on: as many as the bridge reads."""
_TEXT = "The quick brown fox jumps over the lazy dog. "
_LARGE = _TEXT * 20_000
"""900 KB: a body may have more, but a call of a model this large is what people send."""
_HALF = _TEXT * 10_000
_CODE = "export async function main(ns) { await ns.hack(ns.args[0]); }\n" * 2000
"""Larger scripts keep the simulated game busy for seconds, not the host."""
_EDITOR = "mercury-edit-2"
_DEEP = "{" * 3000 + "}" * 3000
_NESTED: Arguments = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(2000)}}


def _record(name: str) -> Arguments:
    return {"day": 25, "phase": 2, "llm_name": name, "speed_ms": 1}


WORST: dict[str, list[Arguments]] = {
    # --- aoc ---
    "fetch_instruction": [{"day": 1}, {"day": 25}],
    "record_speed": [_record("m" * 200), _record("名" * 200), _record(" a" * 100)],
    "withdraw_record": [
        {"day": 25, "id": "x" * 100_000},
        {"day": 25, "phase": 2, "llm_name": "m" * 100_000, "timestamp": "2026-12-01T00:00:00Z"},
    ],
    "speed_leaderboard": [
        {"limit": 100},
        {"limit": 100, "order": "solve_rate"},
        {"llm_name": "m" * 100_000, "offset": 2**31},
    ],
    "speed_history": [{"limit": 200}, {"llm_name": "m" * 100_000}, {"limit": 200, "older": 1}],
    "start_attempt": [{"day": 25, "phase": 2, "llm_name": "m" * 200}],
    "finish_attempt": [{"attempt": "x" * 64, "answer": "7" * 4000}],
    "read_input": [{"attempt": "x" * 64, "offset": 10**9}],
    "leaderboard_cells": [{}],
    "leaderboard_runs": [{"day": 25, "phase": 2, "llm": "m" * 100_000, "measure": "solving"}],
    # --- bitburner ---
    "connection_status": [{}],
    "list_files": [{}, {"server": "n" * 100_000}],
    "read_file": [
        {"filename": "long-line.js", "max_characters": 10**9},
        {"filename": "many-lines.txt", "start_line": 1, "end_line": 10**9, "max_characters": 10**9},
        {"filename": "a" * 100_000 + ".js"},
    ],
    "get_all_files": [
        {"max_bytes": 10**9},
        {"everything": True},
        {"glob": "**/{" + ",".join("ab" * 160) + "}*" * 20 + ".js"},
    ],
    "get_file_metadata": [{}, {"filename": "long-line.js"}],
    "search_files": [
        {"pattern": "(a+)+$", "all_servers": True, "max_matches": 1000},
        {"pattern": "(ab|a|b)*c", "glob": "long-line.js"},
        {"pattern": ".", "max_matches": 1000},
    ],
    "write_file": [
        {"filename": "worst.js", "content": LONG_LINE},
        {"filename": "worst.js", "content": _CODE},
        {"filename": "worst.js", "content": _DEEP * 20},
    ],
    "delete_file": [{"filename": "worst.js"}, {"filename": "scripts/000.js"}],
    "edit_file": [
        {"filename": "long-line.js", "old_text": "ab" * 5000 + "c", "new_text": "x"},
        {"filename": "many-lines.txt", "old_text": "line 1 off\n" * 3000, "new_text": "x"},
        {
            "filename": "long-line.js",
            "edits": [{"old_text": "ab", "new_text": "ba", "count": 450_000}] * 50
            + [{"old_text": "no", "new_text": ""}],
        },
    ],
    "move_file": [
        {"filename": "many-lines.txt", "to": "many-lines.txt", "overwrite": True},
        {"filename": "a" * 100_000, "to": "b" * 100_000},
    ],
    "restore_file": [
        {"filename": "worst.js", "diff": True},
        {"filenames": [f"scripts/{number:03}.js" for number in range(100)], "diff": True},
        {"filename": "worst.js", "list_only": True},
    ],
    "calculate_ram": [{"filename": "long-line.js"}, {"filename": "scripts/001.js"}],
    "get_netscript_definitions": [{}],
    "search_definitions": [
        {"query": "a " * 500, "limit": 50},
        {"query": "getServerMaxMoney" * 58, "limit": 50},
    ],
    "list_servers": [{}, {"glob": "*a" * 500}],
    "backup_save": [{}],
    "write_files": [
        # Five: each file is checked and costed on its own, so more of them only take longer.
        {"files": [{"filename": f"worst/{number}.js", "content": _CODE[:10_000]} for number in range(5)]}
    ],
    "check_files": [
        # A third of the scripts: each is checked on its own, so more of them only take longer.
        {"glob": "scripts/0[0-4]*.js"},
        {
            "drafts": [
                {"filename": f"{n}.js", "content": text}
                for n, text in enumerate((_CODE, LONG_LINE, _DEEP * 20))
            ]
        },
    ],
    "browse_files": [{}, {"filename": "long-line.js"}],
    "files_overview": [{}],
    "files_on_server": [{"server": "home"}],
    "files_ram": [{"server": "home", "filenames": [f"scripts/{number:03}.js" for number in range(50)]}],
    # --- mercury ---
    "mercury_chat_completion": [
        {"messages": [{"role": "user", "content": _LARGE}], "cache": "bypass"},
        {
            "messages": [{"role": "user", "content": "x"}] * 10_000,
            "cache": "bypass",
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": _NESTED}},
        },
    ],
    "mercury_chat_stream": [{"messages": [{"role": "user", "content": _LARGE}]}],
    "mercury_fim_completion": [{"prompt": _HALF, "suffix": _HALF, "cache": "bypass"}],
    "mercury_edit_completion": [{"prompt": _LARGE, "cache": "bypass"}],
    "mercury_apply_edit": [{"original": _HALF, "update": _HALF[::-1], "model": _EDITOR, "cache": "bypass"}],
    "mercury_next_edit": [
        {"content": "line\n" * 100_000, "recent_edits": [_TEXT * 100] * 50, "model": _EDITOR},
        {"content": _LARGE, "cursor": {"line": 1, "column": 900_000}, "model": _EDITOR},
    ],
    "mercury_decide": [
        {
            "state": _LARGE,
            "cache": "bypass",
            "questions": [
                {"name": f"q{number}", "type": "noul", "instructions": _TEXT * 10} for number in range(100)
            ],
        }
    ],
    "mercury_batch": [
        {"prompts": [_TEXT * 40] * 500, "concurrency": 32, "cache": "bypass", "timeout_ms": 2000}
    ],
    "mercury_diffusion_state": [{"run": "x" * 100_000}, {"about": _LARGE, "all": True}],
    "mercury_diffusion_cancel": [{"run": "x" * 100_000}],
    "mercury_list_models": [{}],
    "mercury_usage": [{"days": 400, "by": ["day", "model", "client"]}],
}
