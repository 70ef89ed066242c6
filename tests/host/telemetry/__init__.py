"""What an operator sees of a host."""
