"""Simulated nodes: kubelets, heartbeats, node lifecycle, taints, evictions."""
