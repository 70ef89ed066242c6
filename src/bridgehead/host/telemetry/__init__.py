"""What an operator sees of a host: the access log, audit lines, metrics and traces."""
