"""The official conformance suites against a server of ours that offers every fixture they drive."""
