"""Simulated clusters on a terminal: running them, and their screen, tables and stories."""
