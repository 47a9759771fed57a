"""Traces of workloads in CSV, and the workloads they become in a simulated cluster."""
