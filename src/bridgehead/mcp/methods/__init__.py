"""The methods of the protocol. `request` finds the method of a request."""
