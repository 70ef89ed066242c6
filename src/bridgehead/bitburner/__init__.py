"""The bitburner bridge: the files of a running game of Bitburner, for agents.

The game is the WebSocket client: it dials a port that this bridge listens on, and then answers requests of
its Remote API. It may disconnect at any moment, and all code here expects that.
"""
