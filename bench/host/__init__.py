"""The host measured: calls a second with auth on beside FastMCP, and a minute of load while a far side dies."""
