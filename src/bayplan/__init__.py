"""Bayplan: the parts of Kubernetes that decide about capacity, on one model of what fits."""

__version__ = "0.1.0"
