"""The strategies by storage name."""

from __future__ import annotations

from bayplan.embedded.apiserver.crds.definitions import STORAGE as CUSTOM_DEFINITIONS
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.strategies.cluster import CLUSTER, NETWORKING, NODES, SCHEDULING
from bayplan.embedded.apiserver.strategies.configuration import CONFIGURATION
from bayplan.embedded.apiserver.strategies.definitions import DEFINITIONS
from bayplan.embedded.apiserver.strategies.pods import PODS
from bayplan.embedded.apiserver.strategies.storage import STORAGE
from bayplan.embedded.apiserver.strategies.strategy import RestStrategy
from bayplan.embedded.apiserver.strategies.workloads import WORKLOADS

PLAIN = RestStrategy()

STRATEGIES: dict[str, RestStrategy] = {
    "pods": PODS,
    "nodes": NODES,
    CUSTOM_DEFINITIONS: DEFINITIONS,
    **WORKLOADS,
    **NETWORKING,
    **CLUSTER,
    **CONFIGURATION,
    **SCHEDULING,
    **STORAGE,
}


def strategy_of(storage: str) -> RestStrategy:
    """Return the strategy of a storage name."""
    return STRATEGIES.get(storage, PLAIN)


def strategy_for(kind: ServedKind) -> RestStrategy:
    """Return the strategy of a kind, which may differ from that of its storage name."""
    return STRATEGIES.get(kind.resource) or strategy_of(kind.storage)
