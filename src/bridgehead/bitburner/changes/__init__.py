"""Changes: write files of the game, keep every version, and detect files that changed elsewhere."""
