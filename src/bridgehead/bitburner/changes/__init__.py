"""Changes: writes files of the game, keeps every version, and notices files that changed elsewhere."""
