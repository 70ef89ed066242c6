"""Values: what goes over the wire (content, JSON Schemas), and what is wrong with a value."""
