"""The bitburner bridge, tested against the shipped simulation of the game."""
