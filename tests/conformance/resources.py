"""Resources: owns the fixtures that are read, filled in from a template, and subscribed to."""

import json

from bridgehead.mcp import Context
from tests.conformance.bridge import bridge
from tests.conformance.media import PNG

TEMPLATE = "test://template/{id}/data"


@bridge.resource("test://static-text", name="static-text", description="Plain text.", mime_type="text/plain")
def static_text(ctx: Context[None]) -> str:
    return "This is the content of the static text resource."


@bridge.resource("test://static-binary", name="static-binary", description="An image.", mime_type="image/png")
def static_binary(ctx: Context[None]) -> bytes:
    return PNG


@bridge.resource(
    "test://watched-resource",
    name="watched-resource",
    description="Text that a client may subscribe to.",
    mime_type="text/plain",
)
def watched_resource(ctx: Context[None]) -> str:
    return "Watched resource content"


@bridge.template(TEMPLATE, name="template", description="Data by its id.", mime_type="application/json")
def templated(variables: dict[str, str], ctx: Context[None]) -> str:
    number = variables["id"]
    return json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})


@bridge.complete_template(TEMPLATE, "id")
def complete_id(value: str, given: dict[str, str], ctx: Context[None]) -> list[str]:
    return [number for number in ("123", "456") if number.startswith(value)]
