"""Benchmarks: `python -m bench` prints one JSON line a case; limits.toml says what each must
reach.
"""
