"""The few controllers without which an API server's promises would not hold.

Owners' dependents are collected, and a deleted namespace loses its content.
"""
