"""Which of the groups that could help is bought from: Cluster Autoscaler's expanders, and one more.

Those that Cluster Autoscaler has keep the best candidates by one measure and are chained;
`cheapest-mix` buys of several groups at once, and says how far from the least possible cost that
can be. What they need to know beside the question is a `ExpanderContext`.
"""

from bayplan.autoscaler.expanders.chain import (
    NAMES,
    Chain,
    ExpanderContext,
    ExpanderError,
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
    "node_prices",
    "parse_expanders",
    "pod_prices",
]
