"""The access log, audit lines, metrics and traces of a host."""
