"""What people install, and the files that run it on a machine."""
