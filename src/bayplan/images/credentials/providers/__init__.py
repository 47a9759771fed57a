"""Credential provider plugins: programs that return credentials for images, as in the kubelet.

`config` reads their configuration, `provider` runs them and caches their responses.
"""
