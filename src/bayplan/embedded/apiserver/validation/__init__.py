"""Validation of fields, with kube-apiserver's messages."""
