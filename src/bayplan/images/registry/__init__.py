"""Clients of OCI registries: hosts, credentials, tokens, manifests and verified downloads."""
