"""Netscript: parses the game's definitions and the scripts that use them. Never talks to a game."""
