"""Validation of workloads and PodDisruptionBudgets."""
