"""One call as it is served: its parameters, its context, its hook, and what it asks the client."""
