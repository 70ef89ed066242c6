"""What an agent calls."""
