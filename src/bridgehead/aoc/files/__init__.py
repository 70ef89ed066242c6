"""All code that knows the data directory: names, texts, day files, locks, aliases, watching."""
