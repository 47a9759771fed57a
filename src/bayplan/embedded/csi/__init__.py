"""Simulated CSI drivers: they register on nodes, provision claims, attach and detach volumes."""
