"""Doctor of the game's bridge: what is right between this machine and the game, and what is not."""

from pathlib import Path

from bridgehead.bitburner.doctor import examine


async def examine_with(folder: Path, **settings: str) -> dict[str, tuple[str, str]]:
    environment = {"BITBURNER_LISTEN": "127.0.0.1:0", "BRIDGEHEAD_STATE_DIR": str(folder), **settings}
    return {finding.what: (finding.verdict, finding.text) for finding in await examine(environment, 0.01)}


async def test_without_a_game_the_machine_is_right_and_the_game_is_not(tmp_path: Path) -> None:
    findings = await examine_with(tmp_path)

    assert (findings["state"][0], findings["backups"][0], findings["saves"][0]) == ("right",) * 3
    assert findings["game"][0] != "right"


async def test_backups_that_are_off_are_noted(tmp_path: Path) -> None:
    findings = await examine_with(tmp_path, BITBURNER_BACKUP_DIR="off")

    assert findings["backups"] == ("note", "off: an overwritten file is lost")
    assert "saves" not in findings
