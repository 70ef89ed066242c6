"""Agents: the file that lists them, and what each finds in its home directory."""

import json
import tomllib
from pathlib import Path

import pytest

from bridgehead.aoc.bench.agents import PRESETS, STARTER, Agent, environment_of, prepare_home, read_agents
from bridgehead.runtime.errors import InvalidArgument

SERVER = ["python", "-I", "relay.py", "4711", "secret"]


def read(tmp_path: Path, text: str) -> list[Agent]:
    path = tmp_path / "agents.toml"
    path.write_text(text)
    return read_agents(path)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_needs_no_more_than_its_name(tmp_path: Path, preset: str) -> None:
    (agent,) = read(tmp_path, f'[[agent]]\npreset = "{preset}"\n')

    assert agent.name == preset
    assert "{prompt}" in agent.command
    assert agent.env


def test_a_preset_takes_a_model_a_name_and_further_arguments(tmp_path: Path) -> None:
    (agent,) = read(
        tmp_path,
        '[[agent]]\npreset = "codex"\nmodel = "gpt-5"\nargs = ["--quiet"]\nname = "mine"\nenv = ["X"]\n',
    )

    assert agent.name == "mine"
    assert agent.command[-3:] == ["--model", "gpt-5", "--quiet"]
    assert agent.env == [*PRESETS["codex"].env, "X"]


def test_any_command_with_a_prompt_is_an_agent(tmp_path: Path) -> None:
    (agent,) = read(
        tmp_path, '[[agent]]\nname = "x"\ncommand = ["my-agent", "{prompt}"]\nlanguage = "Rust"\n'
    )

    assert (agent.command, agent.language) == (["my-agent", "{prompt}"], "Rust")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no agents"),
        ("[[agent]\n", "cannot be used"),
        ('[[agent]]\npreset = "clippy"\n', "There is no preset 'clippy'"),
        ('[[agent]]\nname = "x"\ncommand = ["my-agent"]\n', "has no {prompt}"),
        ('[[agent]]\nname = "x"\ncomand = ["{prompt}"]\n', "comand"),
        ('[[agent]]\npreset = "codex"\n[[agent]]\npreset = "codex"\n', "two agents called 'codex'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read(tmp_path, text)

    assert words in refused.value.message
    assert refused.value.next_step


def test_a_missing_file_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_agents(tmp_path / "agents.toml")

    assert "--init" in str(refused.value.next_step)
    assert [agent.name for agent in read(tmp_path, STARTER)] == ["claude", "codex"]


def test_an_agent_gets_few_variables_and_those_that_it_asks_for(tmp_path: Path) -> None:
    ours = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "MY_KEY": "k",
        "AWS_SECRET": "s",
        "AOC_DATA_DIR": "/data",
        "HOME": "/me",
    }

    given = environment_of(Agent(env=["MY_*"], set={"FLAG": "1"}), ours, tmp_path)

    assert {name: given.get(name) for name in ("PATH", "LC_ALL", "MY_KEY", "FLAG")} == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "MY_KEY": "k",
        "FLAG": "1",
    }
    assert given["HOME"] == str(tmp_path)
    assert not {"AWS_SECRET", "AOC_DATA_DIR"} & given.keys()


def test_every_configuration_names_the_bridge_and_nothing_else(tmp_path: Path) -> None:
    config = prepare_home(tmp_path, SERVER, Agent())

    claude = json.loads(config.read_text())["mcpServers"]
    gemini = json.loads((tmp_path / ".gemini" / "settings.json").read_text())["mcpServers"]
    codex = tomllib.loads((tmp_path / ".codex" / "config.toml").read_text())["mcp_servers"]
    opencode = json.loads((tmp_path / ".config" / "opencode" / "opencode.json").read_text())["mcp"]
    for servers in (claude, gemini, codex):
        assert list(servers) == ["aoc"]
        assert [servers["aoc"]["command"], *servers["aoc"]["args"]] == SERVER
    assert opencode["aoc"]["command"] == SERVER


def test_credentials_are_copied_to_the_same_place_and_only_from_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, new = tmp_path / "me", tmp_path / "new"
    (home / ".my").mkdir(parents=True)
    (home / ".my" / "key").write_text("secret")
    (tmp_path / "other").write_text("not yours")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))

    prepare_home(new, SERVER, Agent(files=["~/.my/key", "~/.my/missing", str(tmp_path / "other")]))

    assert (new / ".my" / "key").read_text() == "secret"
    assert not list(new.rglob("other"))
