"""What the agent of attach limits counts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class LimitMetrics:
    """The metrics of one agent."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.writes = Counter(
            "bayplan_attach_limit_writes",
            "Changes of nodes and CSINodes that were written, by kind.",
            ["kind"],
            registry=registry,
        )
        self.errors = Counter(
            "bayplan_attach_limit_errors",
            "Changes that were refused or failed, by kind and reason.",
            ["kind", "reason"],
            registry=registry,
        )
        self.nodes = _gauge("nodes", "Nodes that are looked after.", registry)
        self.keys = _gauge("published", "Keys that stand in the status of nodes.", registry)
        self.unknown = _gauge(
            "unknown_types",
            "Nodes whose instance type is in no table, and that get the documented default.",
            registry,
        )
        self.unreadable = _gauge(
            "unreadable", "Keys in the status of nodes that cannot be a limit.", registry
        )
        self.contested = _gauge(
            "contested", "Nodes whose keys somebody else keeps changing.", registry
        )
        self.waiting = _gauge(
            "waiting", "Nodes whose last change failed, and is tried again later.", registry
        )


def _gauge(name: str, text: str, registry: CollectorRegistry) -> Gauge:
    return Gauge(f"bayplan_attach_limit_{name}", text, registry=registry)
