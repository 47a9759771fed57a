"""Talking to any Kubernetes API server: configuration, reads, watches, writes, leader election."""
