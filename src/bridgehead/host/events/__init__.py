"""Events of a host, as they happen: posted to a URL, or read as a stream by an operator."""
