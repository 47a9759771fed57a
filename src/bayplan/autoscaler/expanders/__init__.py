"""Expanders, which choose the node group to scale up: Cluster Autoscaler's, and one more.

Cluster Autoscaler's expanders filter the options by one measure and are chained; `grpc` leaves the
choice to another process; `cheapest-mix` scales up several groups at once, and reports how far its
cost can be from the minimum. Their further inputs are in an `ExpanderContext`.
"""

from bayplan.autoscaler.expanders.chain import (
    NAMES,
    Chain,
    ExpanderContext,
    ExpanderError,
    check_expanders,
    parse_expanders,
)
from bayplan.autoscaler.expanders.filters import CONFIG_MAP, KEY
from bayplan.autoscaler.expanders.price import PodPrices, node_prices, pod_prices

__all__ = [
    "CONFIG_MAP",
    "KEY",
    "NAMES",
    "Chain",
    "ExpanderContext",
    "ExpanderError",
    "PodPrices",
    "check_expanders",
    "node_prices",
    "parse_expanders",
    "pod_prices",
]
