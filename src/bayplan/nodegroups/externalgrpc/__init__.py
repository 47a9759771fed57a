"""Cluster Autoscaler's externalgrpc protocol, client and server.

`ExternalGrpc` is a provider that calls another process; `serve` offers a provider to others.
"""
