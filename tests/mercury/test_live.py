"""The real API, for whoever has a key: `MERCURY_LIVE_TEST=1 MERCURY_API_KEY=… pytest` this file.

Without both there is nothing to collect here, so that no run counts a test that did not happen.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.mercury.process import bridge_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASK: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Name three famous bridges."}],
    "max_tokens": 200,
}

if os.environ.get("MERCURY_LIVE_TEST") == "1" and os.environ.get("MERCURY_API_KEY"):
    LIVE = {
        "MERCURY_API_KEY": os.environ["MERCURY_API_KEY"],
        "MERCURY_MODEL": os.environ.get("MERCURY_MODEL", "mercury-2"),
    }
    URL = os.environ.get("MERCURY_API_URL", "https://api.inceptionlabs.ai/v1")

    async def test_the_real_api_answers(tmp_path: Path) -> None:
        async with bridge_process(URL, tmp_path, **LIVE) as client:
            models = await client.call("mercury_list_models")
            chat = await client.call("mercury_chat_completion", ASK)
            stream = await client.call("mercury_chat_stream", ASK, progress=1)
            wrong = await client.error("mercury_chat_completion", {**ASK, "model": "no-such-model"})

        assert models["structuredContent"]["models"]
        for result in (chat, stream):
            assert "isError" not in result, result
            assert result["structuredContent"]["metadata"]["usage"]["completion_tokens"] > 0
        assert client.progress()
        assert wrong["type"] == "validation_error"
