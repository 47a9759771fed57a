"""Simulated CSI drivers: registration, provisioning, attaching and detaching."""
