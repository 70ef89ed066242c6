"""MCP servers, called bridges, on our own protocol engine.

Owns the version number, which the build reads from this file. Exports nothing else: import what you need
from the package that owns it, so that a server loads only what it uses.
"""

__version__ = "0.3.0"
