"""The database as the far side: records, attempts and aliases in PostgreSQL, shared by all replicas."""
