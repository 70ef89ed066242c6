"""PostgreSQL for what replicas of this bridge count together."""
