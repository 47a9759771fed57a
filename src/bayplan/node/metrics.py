"""Metrics of the attach limit agent."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class LimitMetrics:
    """The metrics of one agent."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.writes = Counter(
            "bayplan_attach_limit_writes",
            "Patches of nodes and CSINodes that were written, by kind.",
            ["kind"],
            registry=registry,
        )
        self.errors = Counter(
            "bayplan_attach_limit_errors",
            "Patches that were refused or failed, by kind and reason.",
            ["kind", "reason"],
            registry=registry,
        )
        self.nodes = _gauge("nodes", "Nodes whose limits are published.", registry)
        self.keys = _gauge("published", "Keys that are published in the status of nodes.", registry)
        self.unknown = _gauge(
            "unknown_types",
            "Nodes whose instance type is not in a table, and that get the cloud's default.",
            registry,
        )
        self.unreadable = _gauge(
            "unreadable", "Keys in the status of nodes that are not a valid limit.", registry
        )
        self.contested = _gauge(
            "contested", "Nodes whose keys another client keeps changing.", registry
        )
        self.waiting = _gauge(
            "waiting", "Nodes whose last patch failed, and is retried later.", registry
        )


def _gauge(name: str, text: str, registry: CollectorRegistry) -> Gauge:
    return Gauge(f"bayplan_attach_limit_{name}", text, registry=registry)
