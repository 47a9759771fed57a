"""Helpers that know nothing of Kubernetes: clocks, the virtual event loop, rate limits, durations,
plain values, configuration files and suggestions for misspelt names.
"""
