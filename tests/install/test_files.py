"""Configuration files on disk: replaced as a whole, kept as they were, and never raced for."""

import os
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from bridgehead.install import files
from bridgehead.install.errors import InstallError

from .desk import Desk, servers


def backups(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.bak"))


def test_a_file_is_kept_beside_before_it_changes(desk: Desk) -> None:
    path = desk.project / "mcp.json"
    path.write_text("{}", encoding="utf-8")

    said = desk.install("mcp.json", "aoc")

    (backup,) = backups(desk.project)
    assert backup.read_text(encoding="utf-8") == "{}"
    assert f"Backup of the file: {backup.name}" in said.out


def test_only_the_newest_backups_are_kept(desk: Desk) -> None:
    path = desk.project / "mcp.json"
    path.write_text("{}", encoding="utf-8")
    other = desk.project / "mcp.json.bak"
    other.write_text("mine", encoding="utf-8")

    for _ in range(files.BACKUPS):
        desk.install("mcp.json", "aoc")
        desk.install("mcp.json", "--remove")

    ours = [backup for backup in backups(desk.project) if backup != other]
    assert len(ours) == files.BACKUPS
    assert '"aoc"' in ours[-1].read_text(encoding="utf-8")
    assert other.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o640])
def test_a_file_keeps_its_mode(desk: Desk, mode: int) -> None:
    path = desk.project / "mcp.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(mode)

    desk.install("mcp.json", "aoc")

    assert path.stat().st_mode & 0o777 == mode
    assert backups(desk.project)[0].stat().st_mode & 0o777 == mode & 0o600


def test_a_link_stays_a_link(desk: Desk) -> None:
    target = desk.home / "dotfiles" / "mcp.json"
    target.parent.mkdir()
    target.write_text("{}", encoding="utf-8")
    link = desk.project / "mcp.json"
    link.symlink_to(target)

    desk.install("mcp.json", "aoc")

    assert link.is_symlink()
    assert '"aoc"' in target.read_text(encoding="utf-8")
    assert len(backups(target.parent)) == 1


def test_a_file_that_another_program_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("theirs", encoding="utf-8")

    with pytest.raises(InstallError, match="was changed by another program just now"):
        files.write(path, "before", "after", "20261116T000000Z")

    assert path.read_text(encoding="utf-8") == "theirs"


def test_a_file_that_is_read_only_is_left_alone(desk: Desk) -> None:
    path = desk.project / "mcp.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o444)

    said = desk.install("mcp.json", "aoc")

    assert (said.status, said.out) == (1, "")
    assert f"{path} is read-only. Nothing was written." in said.err
    assert path.read_text(encoding="utf-8") == "{}"
    assert backups(desk.project) == []


def test_installations_at_the_same_time_wait_for_each_other(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    path = tmp_path / ".cursor" / "mcp.json"
    path.write_text('{"mcpServers": {"other": {}}}', encoding="utf-8")
    program = "import os, sys; from bridgehead.install.command import main; main(sys.argv[1:], os.environ)"

    def at_once(*options: str) -> None:
        running = [
            subprocess.Popen(
                [sys.executable, "-c", program, "cursor", "--name", f"n{number}", *options],
                env={**os.environ, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)},
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
            )
            for number in range(6)
        ]
        assert [one.wait(30) for one in running] == [0] * 6

    at_once("aoc")
    written = servers(path)
    at_once("--remove")

    assert set(written) == {"other", *(f"n{number}" for number in range(6))}
    assert path.read_text(encoding="utf-8") == '{"mcpServers": {"other": {}}}'


@pytest.mark.parametrize("way", ["folder", "file"])
def test_an_installation_that_does_not_end_is_not_waited_for_forever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    home = str(tmp_path)
    if way == "file":  # as on Windows
        assert filelock.has_fcntl or sys.platform == "win32"  # it was imported while there was one
        monkeypatch.setitem(sys.modules, "fcntl", None)
    with (
        files.install_lock(home),
        pytest.raises(InstallError, match="is still running"),
        files.install_lock(home, within=0.1),
    ):
        pytest.fail("two at once")
    with files.install_lock(home, within=0.1), files.install_lock(home + "/nowhere"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    path = tmp_path / "file" / "mcp.json"

    with pytest.raises(InstallError, match=r"mcp\.json cannot be (read|written)"):
        files.write(path, None, "{}", "20261116T000000Z")


def test_a_folder_where_a_file_should_be_is_named(desk: Desk) -> None:
    (desk.project / "mcp.json").mkdir()

    said = desk.install("mcp.json")

    assert said.status == 1
    assert "cannot be read" in said.err


def test_a_path_may_begin_at_home(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(desk.home))
    monkeypatch.setenv("USERPROFILE", str(desk.home))

    desk.install("cursor", "aoc", "--path", "~/special.json")

    assert (desk.home / "special.json").exists()
