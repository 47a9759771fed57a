"""Buying nodes: for which pods, of which groups, how many."""
