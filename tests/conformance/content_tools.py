"""Tools that answer at once: owns the fixtures for each kind of content, for errors and for schemas."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from bridgehead.mcp import (
    Arguments,
    Audio,
    Content,
    Context,
    Embedded,
    Image,
    NoArguments,
    Text,
    TextResource,
    ToolError,
)
from tests.conformance.bridge import bridge
from tests.conformance.media import PNG_BASE64, WAV_BASE64

PNG = Image(PNG_BASE64, "image/png")


@bridge.tool("Answers with plain text.", read_only=True)
def test_simple_text(args: NoArguments, ctx: Context[None]) -> str:
    return "This is a simple text response for testing."


@bridge.tool("Answers with an image.", read_only=True)
def test_image_content(args: NoArguments, ctx: Context[None]) -> list[Content]:
    return [PNG]


@bridge.tool("Answers with a sound.", read_only=True)
def test_audio_content(args: NoArguments, ctx: Context[None]) -> list[Content]:
    return [Audio(WAV_BASE64, "audio/wav")]


@bridge.tool("Answers with a resource and its contents.", read_only=True)
def test_embedded_resource(args: NoArguments, ctx: Context[None]) -> list[Content]:
    text = "This is an embedded resource content."
    return [Embedded(TextResource(uri="test://embedded-resource", mime_type="text/plain", text=text))]


@bridge.tool("Answers with text, an image and a resource.", read_only=True)
def test_multiple_content_types(args: NoArguments, ctx: Context[None]) -> list[Content]:
    text = '{"test":"data","value":123}'
    resource = TextResource(uri="test://mixed-content-resource", mime_type="application/json", text=text)
    return [Text("Multiple content types test:"), PNG, Embedded(resource)]


@bridge.tool("Always fails.", read_only=True)
def test_error_handling(args: NoArguments, ctx: Context[None]) -> str:
    raise ToolError("This tool intentionally returns an error for testing")


class Placed(Arguments):
    region: Annotated[
        str,
        Meta(description="Where to run; mirrored in a header.", extra_json_schema={"x-mcp-header": "Region"}),
    ]


@bridge.tool("Says where it would run.", read_only=True)
def test_mirrored_header(args: Placed, ctx: Context[None]) -> str:
    return f"Runs in {args.region}."


class Address(Struct):
    street: str | None = None
    city: str | None = None


class Contact(Arguments, rename="camel"):
    name: str | None = None
    address: Address | None = None
    contact_method: Literal["phone", "email"] | None = None
    phone: str | None = None
    email: str | None = None


CONTACT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        },
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@bridge.tool(
    "Has a schema that uses all of JSON Schema 2020-12.", read_only=True, input_schema=CONTACT_SCHEMA
)
def json_schema_2020_12_tool(args: Contact, ctx: Context[None]) -> str:
    return f"Contact: {args.name}"
