"""What bridges share."""
