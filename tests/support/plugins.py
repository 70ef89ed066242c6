"""Distributions of others, installed for a test: one built and installed by pip, others made by hand."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).parent / "plugin"
PATIENCE = 300
BUILD = "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])"


def install_weather(target: Path) -> Path:
    """Install the distribution `bridgehead-weather` into a folder, as pip does it, without a network."""
    if sys.platform == "win32":  # under Wine pip takes longer than a test may
        return _build_and_unpack(target)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"),
            *("--no-build-isolation", "--target", str(target), str(PROJECT)),
        ],
        check=True,
        timeout=PATIENCE,
    )
    return target


def _build_and_unpack(target: Path) -> Path:
    """Do the two steps of pip that matter: let the project's backend make a wheel, and unpack that."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-c", BUILD, folder],
            cwd=PROJECT,
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(target)
    return target


def write_distribution(
    folder: Path, distribution: str, bridge: str, code: str, *, module: str | None = None
) -> Path:
    """Write an installed distribution with one bridge, whose module has this code."""
    module = module or f"{distribution.replace('-', '_')}_bridge"
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
    points = f"""\
[console_scripts]
x = y:z

[bridgehead.bridges]
{bridge} = {module}:manifest

[other]
{bridge} = no:no
"""
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    return folder
