"""Which strategy a kind has."""

from __future__ import annotations

from bayplan.embedded.apiserver.crds.definitions import STORAGE as CUSTOM_DEFINITIONS
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.strategies.cluster import CLUSTER, NETWORKING, NODES, SCHEDULING
from bayplan.embedded.apiserver.strategies.configuration import CONFIGURATION
from bayplan.embedded.apiserver.strategies.definitions import DEFINITIONS
from bayplan.embedded.apiserver.strategies.pods import PODS
from bayplan.embedded.apiserver.strategies.storage import STORAGE
from bayplan.embedded.apiserver.strategies.strategy import Strategy
from bayplan.embedded.apiserver.strategies.workloads import WORKLOADS

PLAIN = Strategy()

STRATEGIES: dict[str, Strategy] = {
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


def strategy_of(storage: str) -> Strategy:
    """The strategy of the kind kept under a storage name."""
    return STRATEGIES.get(storage, PLAIN)


def strategy_for(kind: Kind) -> Strategy:
    """The strategy of a kind, which may have its own rules about what others show too."""
    return STRATEGIES.get(kind.resource) or strategy_of(kind.storage)
