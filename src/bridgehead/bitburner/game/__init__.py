"""Game: everything that knows the game's wire: names, messages, connections, and sharing them."""
