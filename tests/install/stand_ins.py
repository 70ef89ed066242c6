"""Settings of three bridges as an installation sees them, without the bridges."""

from bridgehead.runtime.directories import StateSettings
from bridgehead.runtime.settings import PATH, TEXT, Setting, Settings, choice, whole

KEY = "sk-quite-secret-1234"


class Bitburner(StateSettings):
    wait = Setting("BITBURNER_CONNECT_WAIT_MS", whole(), 2000, "How long a call waits.")


class Aoc(Settings):
    data_dir = Setting("AOC_DATA_DIR", PATH, None, "The folder with the puzzles.")
    year = Setting("AOC_YEAR", whole(2015, 2099), 2025, "The event.")


class Mercury(StateSettings):
    api_key = Setting("MERCURY_API_KEY", TEXT, "", "The key.", secret=True)
    key_file = Setting("MERCURY_API_KEY_FILE", PATH, None, "A file with the key.")
    proxy = Setting("HTTPS_PROXY", TEXT, "", "May hold a password.", secret=True)
    model = Setting("MERCURY_MODEL", TEXT, "mercury-coder-small", "The model.")
    transport = Setting("MCP_TRANSPORT", choice("stdio", "http"), "stdio", "How clients reach it.")


BRIDGES: dict[str, type[Settings]] = {"bitburner": Bitburner, "aoc": Aoc, "mercury": Mercury}
