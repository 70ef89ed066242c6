"""TypeScript: the optional type checker, a program that runs beside the bridge. Never talks to a game."""
