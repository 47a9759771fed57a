"""Deployment manifests: custom resource definitions and all objects that run Bayplan."""
