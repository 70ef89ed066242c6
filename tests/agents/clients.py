"""Clients: the agent CLIs, how each is installed and pointed at servers and at a model.

Versions are pinned, so that a change fails for what it breaks; `--newest` asks npm for newer ones.
"""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop.node import Package
from tests.support.fake_model import FakeModel


@dataclass(frozen=True)
class Server:
    """A bridge as a client starts it."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True)
class Launch:
    """How one run of a client is started."""

    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


Prepare = Callable[[Path, FakeModel, list[Server]], Launch]
"""Writes a client's configuration into an empty home, and returns what is run; the prompt is added."""


@dataclass(frozen=True)
class Client:
    """An agent CLI."""

    name: str
    package: Package
    program: str
    prepare: Prepare
    model: str = "fake-model"

    @property
    def path(self) -> str:
        """Where its program is, once it is installed."""
        return str(self.package.folder / "node_modules" / ".bin" / self.program)

    def install(self, node: str) -> None:
        """Install it."""
        self.package.install()
        for script in ("install.cjs", "postinstall.mjs"):
            prepare = self.package.home / script
            if prepare.exists():  # puts the program in its place; npm was told to run no scripts
                subprocess.run(
                    (node, str(prepare)), cwd=prepare.parent, check=True, capture_output=True, timeout=120
                )


def newest(package: Package) -> Package:
    """Return a package at the newest version on npm."""
    done = subprocess.run(
        ("npm", "view", package.name, "version"), capture_output=True, text=True, check=True, timeout=60
    )
    return Package(package.name, done.stdout.strip())


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2), encoding="utf-8")


def _as_json(servers: list[Server]) -> dict[str, object]:
    return {
        one.name: {"command": one.command[0], "args": list(one.command[1:]), "env": one.environment}
        for one in servers
    }


def _prepare_claude(home: Path, model: FakeModel, servers: list[Server]) -> Launch:
    _write(home / "servers.json", {"mcpServers": _as_json(servers)})
    allowed = ",".join(f"mcp__{one.name}" for one in servers)
    return Launch(
        ("--mcp-config", str(home / "servers.json"), "--strict-mcp-config", "--allowedTools", allowed, "-p"),
        model.environment("anthropic"),
    )


def _prepare_codex(home: Path, model: FakeModel, servers: list[Server]) -> Launch:
    lines = [
        f'model = "{model.model}"',
        'model_provider = "fake"',
        'approval_policy = "never"',
        "[model_providers.fake]",
        'name = "fake"',
        f'base_url = "{model.url}/v1"',
        'wire_api = "responses"',
        'env_key = "OPENAI_API_KEY"',
    ]
    for one in servers:
        lines += [
            f"[mcp_servers.{one.name}]",
            f"command = {json.dumps(one.command[0])}",
            f"args = {json.dumps(one.command[1:])}",
            'default_tools_approval_mode = "approve"',
            "required = true",  # else the first search may come before the servers are up
            f"[mcp_servers.{one.name}.env]",
            *(f"{name} = {json.dumps(value)}" for name, value in one.environment.items()),
        ]
    _write(home / ".codex" / "config.toml", "\n".join(lines) + "\n")
    return Launch(
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        {"OPENAI_API_KEY": "fake"},
    )


def _prepare_gemini(home: Path, model: FakeModel, servers: list[Server]) -> Launch:
    _write(
        home / ".gemini" / "settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "general": {"disableAutoUpdate": True},
            "privacy": {"usageStatisticsEnabled": False},
            "mcpServers": _as_json(servers),
        },
    )
    return Launch(("--yolo", "-m", model.model, "-p"), model.environment("gemini"))


def _prepare_qwen(home: Path, model: FakeModel, servers: list[Server]) -> Launch:
    _write(
        home / ".qwen" / "settings.json",
        {
            "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
            "general": {"disableAutoUpdate": True},
            "privacy": {"usageStatisticsEnabled": False},
            "mcpServers": _as_json(servers),
        },
    )
    return Launch(("--yolo", "-p"), model.environment("openai"))


def _prepare_opencode(home: Path, model: FakeModel, servers: list[Server]) -> Launch:
    _write(
        home / "opencode.json",
        {
            "autoupdate": False,
            "provider": {
                "fake": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "fake",
                    "options": {"baseURL": f"{model.url}/v1", "apiKey": "fake"},
                    "models": {model.model: {"name": "fake", "limit": {"context": 200_000, "output": 8_000}}},
                }
            },
            "mcp": {
                one.name: {
                    "type": "local",
                    "command": list(one.command),
                    "environment": one.environment,
                    "enabled": True,
                }
                for one in servers
            },
        },
    )
    return Launch(("run", "-m", f"fake/{model.model}"), {"OPENCODE_CONFIG": str(home / "opencode.json")})


def _prepare_continue(home: Path, model: FakeModel, servers: list[Server]) -> Launch:
    config = {
        "name": "fake",
        "version": "1.0.0",
        "schema": "v1",
        "models": [
            {
                "name": "fake",
                "provider": "openai",
                "model": model.model,
                "apiBase": f"{model.url}/v1",
                "apiKey": "fake",
                "roles": ["chat"],
                "capabilities": ["tool_use"],
            }
        ],
        "mcpServers": [
            {
                "name": one.name,
                "command": one.command[0],
                "args": list(one.command[1:]),
                "env": one.environment,
            }
            for one in servers
        ],
    }
    _write(home / "config.yaml", config)  # JSON is YAML
    return Launch(
        ("--config", str(home / "config.yaml"), "--auto", "-p"), {"CONTINUE_TELEMETRY_ENABLED": "0"}
    )


CLIENTS = (
    Client(
        "Claude Code",
        Package("@anthropic-ai/claude-code", "2.1.327"),
        "claude",
        _prepare_claude,
        model="claude-opus-4-5",
    ),
    # Models that it knows: it cuts the results of others short. Newer ones call tools from programs.
    Client("Codex", Package("@openai/codex", "0.169.0"), "codex", _prepare_codex, "gpt-5.5"),
    Client("Codex", Package("@openai/codex", "0.169.0"), "codex", _prepare_codex, "gpt-6.1-sol"),
    Client(
        "Gemini CLI",
        Package("@google/gemini-cli", "0.61.0"),
        "gemini",
        _prepare_gemini,
        model="gemini-2.5-pro",
    ),
    Client("Qwen Code", Package("@qwen-code/qwen-code", "0.24.4"), "qwen", _prepare_qwen),
    Client("opencode", Package("opencode-ai", "1.18.33"), "opencode", _prepare_opencode),
    Client("Continue", Package("@continuedev/cli", "1.5.47"), "cn", _prepare_continue),
)
