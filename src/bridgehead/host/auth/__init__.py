"""Who may use the host: bearer tokens from a file, from an authorisation server, or nobody is asked."""
