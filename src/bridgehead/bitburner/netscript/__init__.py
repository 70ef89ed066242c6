"""Netscript: what is known of the game's API and of the scripts that use it. No game is asked here."""
