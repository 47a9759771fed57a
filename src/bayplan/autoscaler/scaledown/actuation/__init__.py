"""Carrying a scale-down plan out: taints, evictions, deletions, and the way back."""
