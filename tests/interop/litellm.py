"""LiteLLM: a gateway that others wrote, between the mercury bridge and the simulated API.

Installed from PyPI into an environment of its own below `.runtime/`, because it needs a hundred packages that
nothing else here does. Owns its configuration, the calls and the right answers.
"""

import json
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.interop.check import Check
from tests.interop.node import ROOT
from tests.interop.server_process import listening
from tests.support.ports import free_port

VERSION = "1.106.2"
MASTER_KEY = "sk-litellm-0123456789"
FILLED = "    total = 0"
FOLDER = ROOT / ".runtime" / f"litellm-{VERSION}"
GAP = {"prompt": "def total(items):\n", "suffix": "\n    return total\n"}


def install() -> Path:
    """Install LiteLLM, unless an earlier run got to the end of doing so; give its command."""
    folder = FOLDER / ("Scripts" if sys.platform == "win32" else "bin")
    stamp = FOLDER / "installed"
    if not stamp.exists():
        print(f"installing litellm {VERSION}", flush=True)
        venv.create(FOLDER, clear=True, with_pip=True)
        command = (str(folder / "python"), "-m", "pip", "install", "-q", f"litellm[proxy]=={VERSION}")
        subprocess.run(command, check=True, timeout=600)
        stamp.touch()
    return folder / "litellm"


@contextmanager
def gateway(simulated: str, folder: Path) -> Iterator[str]:
    """Run the gateway before the simulated API; gives its address."""
    upstream = {"api_base": simulated, "api_key": "sk_simulated"}
    models = {
        "chat": {"model": "openai/mercury-2", **upstream},
        "small": {"model": "openai/mercury-2", "mock_response": "litellm.ContextWindowExceededError"},
        "code": {"model": "text-completion-openai/code", "mock_response": FILLED},
    }
    listed = [{"model_name": name, "litellm_params": params} for name, params in models.items()]
    configuration = {"model_list": listed, "general_settings": {"master_key": MASTER_KEY}}
    file = folder / "litellm.yaml"
    file.write_text(json.dumps(configuration), encoding="utf-8")  # JSON is YAML
    port = free_port()
    command = [str(install()), "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]
    # It would ask the internet for a list of prices.
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    with listening(command, port, offline) as address:
        yield f"{address}/v1"


def checks(address: str, home: Path) -> list[Check]:
    """What a gateway passes on, and what it does in its own way."""
    routes = home / "litellm-routes.toml"
    routes.write_text(
        f"""
        [providers.litellm]
        url = "{address}"
        key = "{MASTER_KEY}"
        timeout_ms = 60000
        [[routes]]
        tool = "mercury_fim_completion"
        to = ["litellm/code"]
        [[routes]]
        model = "small-first"
        to = ["litellm/small", "litellm/chat"]
        [[routes]]
        model = "*"
        to = ["litellm/"]
        """,
        encoding="utf-8",
    )
    said = [{"role": "user", "content": "Hello, in 12 words"}]
    calls: list[tuple[str, str, dict[str, Any], Callable[[Any], None]]] = [
        ("chat", "mercury_chat_completion", {"messages": said, "model": "chat"}, _says("You asked")),
        ("stream", "mercury_chat_stream", {"messages": said, "model": "chat"}, _says("You asked")),
        (
            "too long",
            "mercury_chat_completion",
            {"messages": said, "model": "small-first"},
            _says("You asked"),
        ),
        ("fill-in by /completions", "mercury_fim_completion", GAP, _says(FILLED)),
        (
            "unknown model",
            "mercury_chat_completion",
            {"messages": said, "model": "nobody"},
            _fails("MODEL_NOT_SUITABLE"),
        ),
    ]
    environment = {
        "MERCURY_ROUTES_FILE": str(routes),
        "MERCURY_API_KEY": "sk_interop_0123456789",
        "MERCURY_API_URL": "http://127.0.0.1:9/v1",
        "BRIDGEHEAD_STATE_DIR": str(home / "litellm-state"),
    }
    program = (sys.executable, "-m", "bridgehead", "call", "--json", "mercury")
    return [
        Check(
            name=f"mercury, litellm {VERSION}, {title}",
            command=(*program, tool, *(_argument(name, value) for name, value in given.items())),
            judge=judge,
            environment=environment,
            status=0 if title != "unknown model" else 1,
        )
        for title, tool, given, judge in calls
    ]


def _argument(name: str, value: Any) -> str:
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"


def _says(text: str) -> Callable[[str], None]:
    def judge(output: str) -> None:
        result = json.loads(output)
        assert not result.get("isError"), result["content"]
        assert text in result["content"][0]["text"], result["content"]

    return judge


def _fails(code: str) -> Callable[[str], None]:
    def judge(output: str) -> None:
        error = json.loads(json.loads(output)["content"][0]["text"])["error"]
        assert error["code"] == code, error
        assert "The provider litellm refused" in error["message"], error

    return judge
