"""The bitburner bridge: an agent's hands in a running game of Bitburner.

The game is the WebSocket client: it dials a port that this bridge listens on, and then answers requests of
its Remote API. Everything here treats it as something that comes and goes.
"""
