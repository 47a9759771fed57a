"""The controllers that an API server needs.

They collect dependents of deleted owners, and delete the content of deleted namespaces.
"""
