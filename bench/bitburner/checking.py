"""The command `python -m bench.bitburner.checking`: the script check and the definition search, counted.

With TypeScript installed by `bridgehead bitburner install-checker`, or from an archive given with --from, the
corpus is checked with it, too. --definitions takes a definition file of the real game for the questions.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from bench.bitburner.questions import SETS, count_answers
from bridgehead.bitburner.netscript.checking import check_script
from bridgehead.bitburner.netscript.search import Index
from bridgehead.bitburner.settings import BitburnerSettings
from bridgehead.bitburner.simulator.definitions import definitions
from bridgehead.bitburner.typescript import component
from bridgehead.bitburner.typescript.type_checker import TypeChecker
from bridgehead.bitburner.typescript.typed_findings import find_typed
from tests.bitburner.netscript.corpus_cases import load

SCRIPT_SETS = (
    "wrong",
    "fresh_wrong",
    "held_wrong",
    "newest_wrong",
    "last_wrong",
    "right",
    "fresh_right",
    "held_right",
    "newest_right",
    "last_right",
)


async def count_corpus(checker: TypeChecker | None) -> None:
    """Print how many wrong scripts are named, and how many right ones are flagged."""
    index = Index(definitions())
    for kind in SCRIPT_SETS:
        cases, found = load(kind), 0
        for case in cases:
            source, name = case.files[case.filename], case.filename
            typed = await checker.diagnose(source, name, index.definitions, index.text) if checker else None
            further = (lambda subject, typed=typed: find_typed(subject, typed)) if typed else None
            found += bool(check_script(source, name, index.definitions, index.search, case.files, further))
        print(f"{kind}: {found} of {len(cases)} have problems")


def count_questions(text: str) -> None:
    """Print how often the right declaration comes first, and among the first three."""
    search = Index(text).search
    for title in SETS:
        first, among, asked = count_answers(search, title)
        print(f"questions, {title}: first {first} of {asked}, among three {among} of {asked}")


async def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="archive", type=Path)
    parser.add_argument("--definitions", type=Path)
    options = parser.parse_args()
    count_questions(options.definitions.read_text(encoding="utf-8") if options.definitions else definitions())
    print("rules alone")
    await count_corpus(None)
    with tempfile.TemporaryDirectory() as state:
        settings = BitburnerSettings({"BRIDGEHEAD_STATE_DIR": state})
        component.install(settings, options.archive)
        checker = TypeChecker(settings)
        print(f"with TypeScript {component.VERSION}")
        await count_corpus(checker)
        await checker.close()


if __name__ == "__main__":
    asyncio.run(main())
