"""Supply chain: what a release says of its contents and its source, and what it is not built without."""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from release import images, licences, provenance, sbom, vulnerabilities
from release.dist import ROOT
from release.locked import Package, read

MOMENT = 1_700_000_000
RUNTIME, TEAM = (read(ROOT / "requirements" / f"{name}.txt") for name in ("runtime", "team"))


def test_a_lock_is_read_whole() -> None:
    by_name = {package.name: package for package in TEAM}
    assert len(by_name) == len(TEAM) == sum("==" in line for line in lines_of("team") if line[0].isalnum())
    assert sum(len(package.hashes) for package in TEAM) == sum("--hash=" in line for line in lines_of("team"))
    assert by_name["msgspec"].needed_by == ["bridgehead"]
    assert "redis" in by_name["async-timeout"].needed_by
    assert by_name["async-timeout"].marker == "python_full_version < '3.11.3'"


def lines_of(name: str) -> list[str]:
    return [line for line in (ROOT / "requirements" / f"{name}.txt").read_text().splitlines() if line]


def test_the_sbom_has_every_locked_package_with_its_hashes_licence_and_dependencies() -> None:
    document = sbom.describe("9.9.9", RUNTIME, TEAM, MOMENT)

    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    components: list[dict[str, Any]] = document["components"]
    assert [one["purl"] for one in components] == [package.purl for package in TEAM]
    assert all(one["hashes"] and one["licenses"] for one in components)
    required = {one["name"] for one in components if one["scope"] == "required"}
    assert required == {package.name for package in RUNTIME} & {package.name for package in TEAM}
    references = {one["bom-ref"] for one in components} | {"pkg:pypi/bridgehead@9.9.9"}
    assert {one["ref"] for one in document["dependencies"]} == references
    needed = {each for one in document["dependencies"] for each in one["dependsOn"]}
    assert needed == references - {"pkg:pypi/bridgehead@9.9.9"}, "each package is there for a reason"
    assert document == sbom.describe("9.9.9", RUNTIME, TEAM, MOMENT), "the same for the same commit"


def test_the_provenance_names_each_file_the_source_and_the_locks(tmp_path: Path) -> None:
    (tmp_path / "aoc").mkdir()
    file = tmp_path / "aoc" / "a.mcpb"
    file.write_bytes(b"bundle")
    lock = ROOT / "requirements" / "runtime.txt"
    statement = provenance.describe(
        [file], tmp_path, address="https://git.example/o/r", commit="c" * 40, locks=[lock]
    )

    digest = hashlib.sha256(b"bundle").hexdigest()
    assert statement["subject"] == [{"name": "aoc/a.mcpb", "digest": {"sha256": digest}}]
    source, locked = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source == {"uri": "git+https://git.example/o/r", "digest": {"gitCommit": "c" * 40}}
    assert locked["digest"]["sha256"] == hashlib.sha256(lock.read_bytes()).hexdigest()
    json.dumps(statement)


def test_every_package_that_is_shipped_has_a_licence_that_is_allowed() -> None:
    assert licences.find_problems(TEAM) == []


@pytest.mark.parametrize(
    ("licence", "is_allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only OR Apache-2.0", True),
        ("MIT AND BSD-3-Clause", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-only", False),
        ("", False),
    ],
)
def test_a_licence_nobody_has_looked_at_is_named(
    licence: str, monkeypatch: pytest.MonkeyPatch, *, is_allowed: bool
) -> None:
    monkeypatch.setattr(Package, "licence", licence)
    assert bool(licences.find_problems([Package("some", "1")])) is not is_allowed


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The files that name images, in a folder of their own."""
    for name in images.FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_image_of_others_is_pinned_by_digest() -> None:
    assert images.find_unpinned() == []


def test_a_release_is_not_built_while_an_image_has_no_digest(copied: Path) -> None:
    path = copied / "compose.yaml"
    path.write_text(path.read_text() + "\n# a service\nx:\n  image: nginx:1.29\n")

    with pytest.raises(SystemExit, match=r"compose\.yaml: nginx:1\.29"):
        images.check_pinned(copied)


def test_pinning_writes_the_digest_of_every_image_behind_its_tag_and_renews_it(copied: Path) -> None:
    for name in images.FILES:
        path = copied / name
        path.write_text(re.sub(f"@{images.DIGEST.pattern}", "", path.read_text()))
    unpinned = images.find_unpinned(copied)
    with pytest.raises(SystemExit):
        images.check_pinned(copied)

    for digit in "01":
        asked: list[str] = []

        def resolve(image: str, digit: str = digit, asked: list[str] = asked) -> str:
            asked.append(image)
            return "sha256:" + digit * 64

        images.pin(resolve, copied)
        images.check_pinned(copied)
        assert len(asked) == len(unpinned)
        assert "postgres:17-alpine" in asked
        text = "".join((copied / name).read_text() for name in images.FILES)
        assert text.count(f"@sha256:{digit * 64}") == text.count("@sha256:") == len(unpinned)
        assert "image: bridgehead@" not in text


def test_only_packages_that_were_looked_up_count_as_scanned() -> None:
    """pip-audit ends with success where its database knows none of the packages."""
    skipped = {"name": "msgspec", "skip_reason": "not found"}
    sound: dict[str, Any] = {"name": "redis", "version": "8.1.0", "vulns": []}
    weak = {**sound, "vulns": [{"id": "PYSEC-1", "fix_versions": ["8.1.1"]}]}

    assert vulnerabilities.judge({"dependencies": [skipped]}) == ([], 0)
    assert vulnerabilities.judge({"dependencies": [skipped, sound]}) == ([], 1)
    assert vulnerabilities.judge({"dependencies": [weak]}) == (["redis 8.1.0: PYSEC-1, fixed in 8.1.1"], 1)


def test_a_database_that_cannot_be_reached_is_said_so_and_fails_where_it_must_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vulnerabilities, "ask", lambda *_: None)
    for more, status in (([], 0), (["--required"], 1)):
        monkeypatch.setattr("sys.argv", ["x", str(tmp_path), *more])
        assert vulnerabilities.main() == status
        assert capsys.readouterr().out == vulnerabilities.NOT_SCANNED + "\n"
