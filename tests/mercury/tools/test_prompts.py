"""The prompts: what a person picks, and what it becomes."""

import pytest

from tests.mercury.process import BridgeProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("prompt", "arguments", "words"),
    [
        (
            "review_code",
            {"code": "x = 1", "language": "python", "focus": "speed"},
            ["```python\nx = 1", "speed"],
        ),
        ("review_code", {"code": "a ``` b"}, ["````\na ``` b\n````"]),
        (
            "complete_code",
            {"before": "def f(", "after": "return"},
            ["mercury_fim_completion", "def f(", "return"],
        ),
        ("explain", {"subject": "a bridge", "audience": "children"}, ["a bridge", "for children"]),
    ],
)
async def test_a_prompt_says_what_to_do_with_what_was_given(
    client: BridgeProcess, prompt: str, arguments: dict[str, str], words: list[str]
) -> None:
    result = await client.request("prompts/get", {"name": prompt, "arguments": arguments})

    (message,) = result["messages"]
    assert message["role"] == "user"
    assert all(word in message["content"]["text"] for word in words)


async def test_the_prompts_are_listed_with_their_arguments(client: BridgeProcess) -> None:
    prompts = (await client.request("prompts/list"))["prompts"]

    assert {prompt["name"] for prompt in prompts} == {"review_code", "complete_code", "explain"}
    required = {
        prompt["name"]: [one["name"] for one in prompt["arguments"] if one.get("required")]
        for prompt in prompts
    }
    assert required == {"review_code": ["code"], "complete_code": ["before"], "explain": ["subject"]}
