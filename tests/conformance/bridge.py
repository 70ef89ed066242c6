"""The bridge of the conformance server: owns what is said of it as a whole; its parts declare themselves."""

from bridgehead.mcp import Bridge

bridge: Bridge[None] = Bridge(
    "bridgehead-conformance",
    "1.0.0",
    title="Bridgehead conformance server",
    instructions="Offers every fixture that the official conformance suites drive.",
    changing={"tools", "prompts", "resources"},
    subscribable=True,
)
