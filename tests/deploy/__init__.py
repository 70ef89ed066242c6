"""What people deploy: balancers in front of replicas, manifests, compose, units. `make deploy` runs it."""
