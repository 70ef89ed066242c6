"""Game: all code that knows the game's wire format: names, messages, connections, sharing."""
