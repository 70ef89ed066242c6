"""Benchmark: `bridgehead aoc bench` with the agent CLIs of its presets, against a fake model API.

`make bench-agents` installs the CLIs, lets each solve an invented puzzle with one wrong answer on the way,
and judges what is in the journal. A CLI that cannot run is named with what it said; at least two must run.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bridgehead.aoc.starter import ANSWER1, ANSWER2, make_starter
from tests.agents.clients import CLIENTS
from tests.interop.node import node
from tests.support.fake_model import Call, FakeModel, Say, Turn
from tests.support.person import COMMAND

AT_LEAST = 2
SECONDS = 420
CONTEXT, OUTPUT = 200_000, 8_000


def play(turn: Turn) -> Call | Say:
    """Solve both phases as a model would: from the prompt and from what the tools return."""
    starts = sum(name.endswith("start_attempt") for name in turn.calls)
    ends = sum(name.endswith("finish_attempt") for name in turn.calls)
    name = re.search(r'llm_name \\*"([^"\\]+)', turn.text)
    if name is None:
        return Say("Nothing to do.")
    # Phase 1, a wrong answer, the right one; phase 2, the right one.
    if starts == 0 or (starts == 1 and ends == 2):
        return Call("start_attempt", {"day": 1, "phase": starts + 1, "llm_name": name[1]})
    attempts = re.findall(r"attempt\W{1,12}([0-9a-f]{12})", "\n".join(turn.results))
    if ends < 3 and attempts:
        answer = (ANSWER1 + 1, ANSWER1, ANSWER2)[ends]
        return Call("finish_attempt", {"attempt": attempts[-1], "answer": str(answer)})
    return Say("Done.")


def agents_toml(model: FakeModel) -> str:
    """List the four presets, pointed at the fake model."""
    provider = {
        "fake": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "fake",
            "options": {"baseURL": f"{model.url}/v1", "apiKey": "fake"},
            "models": {"fake-model": {"name": "fake", "limit": {"context": CONTEXT, "output": OUTPUT}}},
        }
    }
    codex = {
        "model_provider": "fake",
        "model_providers.fake.name": "fake",
        "model_providers.fake.base_url": f"{model.url}/v1",
        "model_providers.fake.wire_api": "responses",
        "model_providers.fake.env_key": "OPENAI_API_KEY",
    }
    settings: dict[str, dict[str, Any]] = {
        "claude": {"model": "claude-opus-4-5", "name": "claude"},
        "codex": {
            "model": "gpt-5.5",
            "name": "codex",
            "args": [word for name, value in codex.items() for word in ("-c", f"{name}={json.dumps(value)}")],
        },
        "gemini": {"model": "gemini-2.5-pro", "name": "gemini"},
        "opencode": {"model": "fake/fake-model", "name": "opencode"},
    }
    text = ""
    for preset, values in settings.items():
        # JSON strings and lists of strings are TOML as well.
        lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        text += f'[[agent]]\npreset = "{preset}"\n' + "\n".join(lines) + "\n"
        if preset == "opencode":
            text += (
                f"set = {{ OPENCODE_CONFIG_CONTENT = {json.dumps(json.dumps({'provider': provider}))} }}\n"
            )
        text += "\n"
    return text


def install() -> str:
    """Install Node and the CLIs of the presets; return the PATH that finds them."""
    runtime = node()
    folders = [str(Path(runtime).parent)]
    for client in CLIENTS:
        if client.program in {"claude", "codex", "gemini", "opencode"}:
            client.install(runtime)
            folders.append(str(Path(client.path).parent))
    return os.pathsep.join([*dict.fromkeys(folders), os.environ["PATH"]])


def main() -> int:
    """Run the benchmark; 1 if what it recorded is not what the agents did."""
    parser = argparse.ArgumentParser(prog="python -m tests.agents.benchmark", description=__doc__)
    parser.add_argument("--path", help="a PATH that has the CLIs already")
    options = parser.parse_args()
    path = options.path or install()
    with tempfile.TemporaryDirectory() as scratch, FakeModel(play) as model:
        root = Path(scratch)
        make_starter(root / "data")
        (root / "agents.toml").write_text(agents_toml(model), encoding="utf-8")
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("AOC_", "BRIDGEHEAD_"))
            },
            **model.environment("anthropic"),
            **model.environment("gemini"),
            "OPENAI_API_KEY": "fake",
            "PATH": path,
            "AOC_DATA_DIR": str(root / "data"),
            "BRIDGEHEAD_STATE_DIR": str(root / "state"),
        }
        command = [str(COMMAND), "aoc", "bench", "--agents", str(root / "agents.toml"), "--timeout", "2"]
        done = subprocess.run(command, env=environment, timeout=SECONDS, check=False)
        folder = root / "data" / "bench"
        runs = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
        problems = [problem for run in runs for problem in judge(run, folder)]
        worked = sum(run["phases"][0]["outcome"] != "not started" for run in runs)
        print((folder / "report.md").read_text(encoding="utf-8"))
    for problem in problems:
        print(f"problem: {problem}")
    print(f"{worked} of {len(runs)} agents ran")
    return 1 if problems or worked < AT_LEAST or done.returncode else 0


def judge(run: dict[str, Any], folder: Path) -> list[str]:
    """Say what is wrong with the result of a run; an agent that did nothing is only named."""
    agent = run["agent"]
    phases = [(phase["outcome"], phase["wrong"]) for phase in run["phases"]]
    if phases[0][0] == "not started":
        transcript = folder / "transcripts" / f"{run['id']}.err"
        said = transcript.read_text(errors="replace")[-600:]
        printed = transcript.with_suffix(".out").read_text(errors="replace")[-600:]
        print(f"{agent} {run['version']} did not run: status {run['status']} {run['problem']}")
        print(f"{said}\n{printed}")
        return []
    found = []
    if phases != [("solved", 1), ("solved", 0)]:
        found.append(f"{agent}: {phases} instead of two solved phases with one wrong answer")
    if not run["tokens"]:
        found.append(f"{agent}: no tokens were found in its output")
    if agent == "claude" and run["cost_usd"] is None:
        found.append("claude: no cost was found in its output")
    if not run["version"] or not run["model"]:
        found.append(f"{agent}: version {run['version']!r}, model {run['model']!r}")
    return found


if __name__ == "__main__":
    sys.exit(main())
