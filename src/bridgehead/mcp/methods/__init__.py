"""What each method of the protocol does. `table` finds the method of a request."""
