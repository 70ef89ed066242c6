"""Changes: how a file in the game is changed so that nothing is lost, and what is kept of it here."""
