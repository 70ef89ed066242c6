"""What more replicas bring, and what the servers that they share cost."""
