"""Replicas behind a load balancer, as programs that CI runs: the conformance suite, and a rolling restart."""
