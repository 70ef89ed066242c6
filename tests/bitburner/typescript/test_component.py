"""Component: only the published package is installed, whole or not at all."""

import base64
import hashlib
import io
import os
import platform
import sys
import tarfile
from pathlib import Path

import pytest

from bridgehead.bitburner import commands
from bridgehead.bitburner.settings import BitburnerSettings
from bridgehead.bitburner.typescript import component

FILES = {"package/lib/tsc": b"program", "package/lib/lib.d.ts": b"types", "package/LICENSE": b"licence"}
STRAY = {"package/../../outside": b"bad", "elsewhere/file": b"bad"}


def pack(files: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return written.getvalue()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that counts as the published one on every platform."""
    content = pack(FILES | STRAY)
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    monkeypatch.setattr(component, "DIGESTS", dict.fromkeys(component.DIGESTS, digest))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    path = tmp_path / "package.tgz"
    path.write_bytes(content)
    return path


@pytest.fixture
def settings(tmp_path: Path) -> BitburnerSettings:
    return BitburnerSettings({"BRIDGEHEAD_STATE_DIR": str(tmp_path / "state")})


def test_a_package_is_unpacked_with_its_licence_and_nothing_beside_it(
    settings: BitburnerSettings, archive: Path, tmp_path: Path
) -> None:
    program = component.install(settings, archive)

    folder = program.parent.parent
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {"lib/tsc", "lib/lib.d.ts", "LICENSE"}
    assert list(folder.parent.iterdir()) == [folder]
    assert not (tmp_path / "outside").exists()
    assert sys.platform == "win32" or os.access(program, os.X_OK)


def test_an_earlier_installation_is_replaced(settings: BitburnerSettings, archive: Path) -> None:
    program = component.install(settings, archive)
    program.write_bytes(b"broken")

    assert component.install(settings, archive).read_bytes() == b"program"


def test_a_package_with_another_digest_is_refused_and_nothing_is_left(
    settings: BitburnerSettings, archive: Path
) -> None:
    archive.write_bytes(pack(FILES))

    with pytest.raises(component.ComponentError, match=r"SHA-512 differs. Nothing was installed"):
        component.install(settings, archive)
    assert not component.program_path(settings).exists()


def test_the_digest_of_every_platform_is_a_sha_512() -> None:
    assert len(component.DIGESTS) == 6
    assert {len(base64.b64decode(digest)) for digest in component.DIGESTS.values()} == {64}


def test_a_machine_without_a_package_is_told_so(
    settings: BitburnerSettings, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")

    with pytest.raises(component.ComponentError, match="riscv64"):
        component.install(settings, archive)


@pytest.mark.skipif(sys.platform == "win32", reason="the npm here is a shell script")
def test_the_users_own_npm_fetches_it(
    settings: BitburnerSettings, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncp {archive} "$4/typescript.tgz"\n')
    npm.chmod(0o700)
    monkeypatch.setenv("PATH", str(npm.parent), prepend=os.pathsep)

    assert component.install(settings).read_bytes() == b"program"
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith(f"pack {component.package_name()}@{component.VERSION} ")

    npm.write_text("#!/bin/sh\necho 'E404 not found' >&2\nexit 1\n")
    with pytest.raises(component.ComponentError, match="E404 not found"):
        component.install(settings)


def test_without_npm_the_command_says_what_else_to_do(
    settings: BitburnerSettings,
    archive: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment = {"BRIDGEHEAD_STATE_DIR": str(tmp_path / "state")}
    monkeypatch.setenv("PATH", str(tmp_path))

    assert commands.main(["install-checker"], environment) == 1
    assert "give it with --from" in capsys.readouterr().err
    assert commands.main(["install-checker", "--from", str(tmp_path / "gone.tgz")], environment) == 1
    assert commands.main(["install-checker", "--from", str(archive)], environment) == 0
    assert "is installed in" in capsys.readouterr().out
