"""Benchmarks: `python -m bench` prints one JSON line a case; limits.toml has what each must
reach.
"""
