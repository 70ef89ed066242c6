"""Authentication and authorisation: our own tokens, an authorisation server's, their rights and limits."""
