"""One call being served: its parameters, its context, its hook, and its questions to the client."""
