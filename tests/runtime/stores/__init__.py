"""The connections to the servers that replicas share."""
