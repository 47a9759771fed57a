"""The expander of one loop, with what it must know: prices of pods, and people's priorities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from bayplan.autoscaler.candidates import Expander
from bayplan.autoscaler.expanders import KEY, Chain, Market, PodPrices, pod_prices
from bayplan.client import Untyped
from bayplan.fit import Snapshot
from bayplan.kube.pods import Pod
from bayplan.nodegroups import Provider

PRICE = "price"


@dataclass(frozen=True, slots=True, eq=False)
class Choosing:
    """Makes the expander that the options name."""

    names: tuple[str, ...]
    provider: Provider
    snapshot: Snapshot
    rng: Random
    config_maps: Mapping[str, Untyped]
    """The priority expander's ConfigMap, if there is one; and no others."""

    async def expander(self, waiting: Sequence[Pod], now: datetime) -> Expander:
        """The expander, for these pods."""
        prices = PodPrices()
        if waiting and PRICE in self.names:
            prices = await pod_prices(self.provider, self.snapshot, waiting, now)
        return Chain(self.names, Market(self.rng, prices, self._priorities()))

    def _priorities(self) -> str | None:
        for found in self.config_maps.values():
            data = found.get("data")
            said = data.get(KEY) if isinstance(data, dict) else None
            return said if isinstance(said, str) else None
        return None
