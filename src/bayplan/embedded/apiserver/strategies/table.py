"""Which strategy a kind has."""

from __future__ import annotations

from bayplan.embedded.apiserver.rest.naming import dns_label, path_segment, service_name
from bayplan.embedded.apiserver.strategies.strategy import Strategy

PLAIN = Strategy()

STRATEGIES: dict[str, Strategy] = {
    "nodes": Strategy(keeps_status=True),
    "namespaces": Strategy(name_rule=dns_label),
    "services": Strategy(name_rule=service_name, returns_deleted=True),
    "leases.coordination.k8s.io": Strategy(create_on_update=True),
    "events": Strategy(create_on_update=True),
    **{
        f"{plural}.rbac.authorization.k8s.io": Strategy(name_rule=path_segment)
        for plural in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    },
}


def strategy_of(storage: str) -> Strategy:
    """The strategy of the kind kept under a storage name."""
    return STRATEGIES.get(storage, PLAIN)
