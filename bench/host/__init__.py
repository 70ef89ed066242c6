"""The host measured: calls a second with auth on beside FastMCP, and a minute of load as a far side dies."""
