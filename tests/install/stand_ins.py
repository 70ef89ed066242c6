"""Three bridges as an installation sees them, with nothing behind them."""

from bridgehead.mcp import Bridge
from bridgehead.runtime.directories import StateSettings
from bridgehead.runtime.manifest import FarSide, FormField, Manifest
from bridgehead.runtime.settings import PATH, TEXT, Setting, Settings, choice, number, whole

KEY = "sk-quite-secret-1234"


class Bitburner(StateSettings):
    url = Setting("BITBURNER_RPC_URL", TEXT, "", "May hold a password.", secret=True)
    wait = Setting("BITBURNER_CONNECT_WAIT_MS", whole(), 2000, "How long a call waits.")


class Aoc(Settings):
    data_dir = Setting("AOC_DATA_DIR", PATH, None, "The folder with the puzzles.")
    year = Setting("AOC_YEAR", whole(2015, 2099), 2025, "The event.")


class Mercury(StateSettings):
    api_key = Setting("MERCURY_API_KEY", TEXT, "", "The key.", secret=True)
    key_file = Setting("MERCURY_API_KEY_FILE", PATH, None, "A file with the key.")
    proxy = Setting("HTTPS_PROXY", TEXT, "", "May hold a password.", secret=True)
    model = Setting("MERCURY_MODEL", TEXT, "mercury-coder-small", "The model.")
    budget = Setting("MERCURY_BUDGET_USD", number(0, 1e9), None, "Dollars a day.")
    transport = Setting("MCP_TRANSPORT", choice("stdio", "http"), "stdio", "How clients reach it.")


def _stand_in(
    name: str, settings: type[Settings], *required: str, step: str = "", question: str = ""
) -> Manifest:
    return Manifest(
        name=name,
        title=name.title(),
        summary=name,
        description=name,
        settings=settings,
        make=lambda _settings, _metrics: Bridge(name, "1"),
        far_side=lambda _opened: FarSide(is_up=True, detail="Here."),
        first_step=(lambda _settings: step) if step else None,
        form=(
            *(FormField(variable, variable, is_required=True) for variable in required),
            *([FormField("MERCURY_BUDGET_USD", "Budget", question=question)] if question else []),
        ),
    )


BRIDGES = {
    "bitburner": _stand_in("bitburner", Bitburner, step="Press Connect in the game."),
    "aoc": _stand_in("aoc", Aoc, "AOC_DATA_DIR"),
    "mercury": _stand_in("mercury", Mercury, "MERCURY_API_KEY", question="How many dollars a day?"),
}
