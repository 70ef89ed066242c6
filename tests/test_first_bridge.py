"""docs/first-bridge.md, tried word for word: its commands in a shell, its code where it says, a client."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.waiting import PATIENCE

PAGE = (Path(__file__).parents[1] / "docs" / "first-bridge.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (\d)\. .*?(?=^## )", re.MULTILINE | re.DOTALL)
SECTIONS = {int(found[1]): found[0] for found in SECTION.finditer(PAGE)}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the page is for machines with make")


def blocks(section: int, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", SECTIONS[section], re.MULTILINE | re.DOTALL)


class Reader:
    """Somebody who does what the page says, on a machine without a network."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home / "weather-bridge"
        # Of its own, because `make install` changes it; what is installed here is visible in it.
        import venv  # which the embeddable Python for Windows lacks

        venv.create(home / "venv", symlinks=True)
        [packages] = (home / "venv").glob("lib/python*/site-packages")
        (packages / "here.pth").write_text(
            f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n", encoding="utf-8"
        )
        command = home / "venv" / "bin" / "bridgehead"
        command.write_text(f'#!/bin/sh\nexec "{home}/venv/bin/python" -m bridgehead "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        self.environment = {
            "PATH": os.pathsep.join((str(home / "venv" / "bin"), os.environ["PATH"])),
            "HOME": str(home),
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "false",  # pip reads it as what it leaves out
        }

    def follow(self, section: int) -> str:
        """Run the commands of a section and return what they said."""
        folder = self.project if self.project.exists() else self.home
        [block] = blocks(section, "sh")
        said = ""
        for line in block.splitlines():
            done = subprocess.run(
                [
                    "/bin/sh",
                    "-c",
                    f"{line} 2>&1; status=$?; pwd > {self.home}/pwd; exit $status",
                ],
                cwd=folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}"
            folder = Path((self.home / "pwd").read_text(encoding="utf-8").strip())
            said += done.stdout
        return said

    def insert(self, file: str, code: str, before: str) -> None:
        path = self.project / file
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, f"{code}\n\n{before}"), encoding="utf-8")


async def ask(entry: dict[str, object], environment: dict[str, str]) -> object:
    server = StdioServerParameters.model_validate({**entry, "env": environment})
    async with stdio_client(server) as streams, ClientSession(*streams) as client:
        await client.initialize()
        result = await client.call_tool("forecast", {"place": "Oslo", "days": 1})
    return result.structured_content


async def test_the_page_leads_to_a_bridge_that_works(tmp_path: Path) -> None:
    reader = Reader(tmp_path)

    assert blocks(1, "text")[0].strip() in reader.follow(1)

    functions, declaration = blocks(2, "python")
    reader.insert("src/weather_bridge/bridge.py", functions, "def make(")
    reader.insert("src/weather_bridge/bridge.py", declaration, "    return bridge\n")
    [method] = blocks(3, "python")
    with (reader.project / "tests/test_bridge.py").open("a", encoding="utf-8") as file:
        file.write(f"\n{method}")
    assert blocks(3, "text")[0].strip() in reader.follow(3)

    [configuration] = blocks(4, "json")
    entry = json.loads(configuration.replace("/path/to/weather-bridge", str(reader.project)))
    assert await ask(entry["mcpServers"]["weather"], reader.environment) == {"place": "Oslo", "highs": [4]}

    assert blocks(5, "text")[0].strip() in reader.follow(5)
    written = json.loads((reader.home / ".cursor" / "mcp.json").read_text(encoding="utf-8"))
    assert "weather" in written["mcpServers"]
