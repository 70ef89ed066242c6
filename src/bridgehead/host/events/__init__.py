"""Events of a host: posted to a URL, or streamed to an operator."""
