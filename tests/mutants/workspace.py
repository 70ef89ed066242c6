"""A copy of the project in which modules are changed, and an interpreter that imports the copy.

Most behaviour is tested through child processes, some with an environment of their own. So the copy has its
own virtual environment instead of a PYTHONPATH: whatever starts `sys.executable` or the installed command
runs the mutated module.
"""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "#!{python}\nimport sys\nfrom bridgehead.cli import main\nsys.exit(main())\n"


class Workspace:
    """A folder that is made anew for each run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / ".venv" / "bin" / "python"

    def make(self) -> None:
        """Copy every file that is or could be committed, and make the environment."""
        shutil.rmtree(self.folder, ignore_errors=True)
        listed = subprocess.check_output(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, text=True
        )
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        venv.create(self.folder / ".venv", symlinks=True)
        # The packages of this environment, but not its editable install: that one is in a .pth file, which
        # only counts in an environment's own folder.
        packages = self.folder / ".venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        (packages / "copy.pth").write_text(f"{self.folder / 'src'}\n{sysconfig.get_path('purelib')}\n")
        script = self.python.with_name("bridgehead")
        script.write_text(SCRIPT.format(python=self.python))
        script.chmod(0o755)
