"""Simulated nodes: kubelets for all of them in one task, heartbeats, health, taints, evictions."""
