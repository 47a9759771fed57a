"""The same questions on the wire: Cluster Autoscaler's externalgrpc protocol, both ends of it.

`ExternalGrpc` is a provider that asks another process; `serve` lets other processes ask a provider.
"""
