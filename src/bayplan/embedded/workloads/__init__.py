"""Workload controllers: what turns Deployments, StatefulSets, DaemonSets and Jobs into pods."""
