"""What happens in a host, told at once: posted to a URL, or read as a stream by an operator."""
