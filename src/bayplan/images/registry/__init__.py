"""Talking to OCI registries: references, credentials, mirrors, tokens, and verified downloads."""
