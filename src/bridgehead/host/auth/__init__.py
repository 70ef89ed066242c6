"""Who may use the host: bearer tokens of ours or of an authorisation server, their rights and limits."""
