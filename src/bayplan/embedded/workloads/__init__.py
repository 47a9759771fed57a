"""Workload controllers: Deployments, StatefulSets, DaemonSets, Jobs, disruption budgets."""
