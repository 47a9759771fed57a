"""Expanders one after another: each keeps what it thinks best of what the one before it kept.

Where several are left in the end, one is taken at random. `random` leaves only one, and
`cheapest-mix` takes all that is left and mixes it, so nothing may come after either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from bayplan.autoscaler.estimate.options import (
    Expander,
    ExpanderChoice,
    ExpanderRequest,
    NodeGroupOption,
)
from bayplan.autoscaler.expanders.filters import (
    KEY,
    least_nodes,
    least_waste,
    most_pods,
    prioritised,
)
from bayplan.autoscaler.expanders.mix import cheapest_mix
from bayplan.autoscaler.expanders.price import PodPrices, cheapest, pod_prices
from bayplan.autoscaler.plan import Note
from bayplan.base.suggestions import suggestion
from bayplan.client import Untyped
from bayplan.fit import Snapshot
from bayplan.kube.pods import Pod
from bayplan.nodegroups import Provider

RANDOM = "random"
PRICE = "price"
PRIORITY = "priority"
CHEAPEST_MIX = "cheapest-mix"
SIMPLE: Mapping[str, Callable[[Sequence[NodeGroupOption]], list[NodeGroupOption]]] = {
    "most-pods": most_pods,
    "least-waste": least_waste,
    "least-nodes": least_nodes,
}
NAMES = (RANDOM, *SIMPLE, PRICE, PRIORITY, CHEAPEST_MIX)
LAST = frozenset({RANDOM, CHEAPEST_MIX})
"""What leaves nothing to choose for others."""


class ExpanderError(ValueError):
    """Expanders that cannot be had, or not in this order."""


def parse_expanders(text: str) -> tuple[str, ...]:
    """Expanders as the flag has them, with commas between; ExpanderError says what is wrong."""
    names = tuple(part.strip() for part in text.split(","))
    for at, name in enumerate(names):
        if name not in NAMES:
            raise ExpanderError(f"there is no expander {name[:40]!r}{suggestion(name, NAMES)}")
        if name in names[:at]:
            raise ExpanderError(f"expander {name} is named twice")
        if at and names[at - 1] in LAST:
            raise ExpanderError(f"after expander {names[at - 1]} there is no choice for {name}")
    return names


@dataclass(frozen=True, slots=True, eq=False)
class ExpanderContext:
    """What there is to know beside the groups and the pods."""

    rng: Random
    pods: PodPrices = field(default_factory=PodPrices)
    priorities: str | None = None
    """What the priority expander's ConfigMap says; None if there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Expanders in the order in which they are asked, with what they know."""

    names: tuple[str, ...]
    market: ExpanderContext

    def choose(self, question: ExpanderRequest) -> ExpanderChoice:
        """What to buy of the candidates."""
        left, notes = list(question.candidates), list[Note]()
        for name in self.names:
            if name == CHEAPEST_MIX:
                return cheapest_mix(left, question, tuple(notes))
            left, said = self._keep(name, left, question)
            notes += said
        chosen = self.market.rng.choice(left)
        return ExpanderChoice([chosen.purchase()], tuple(notes))

    def _keep(
        self, name: str, left: list[NodeGroupOption], question: ExpanderRequest
    ) -> tuple[list[NodeGroupOption], list[Note]]:
        match name:
            case "priority":
                return prioritised(left, self.market.priorities)
            case "price":
                return cheapest(left, self.market.pods, len(question.snapshot.cluster.slots)), []
            case "random":
                return [self.market.rng.choice(left)], []
            case _:
                return SIMPLE[name](left), []


@dataclass(frozen=True, slots=True, eq=False)
class ExpanderFactory:
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
        return Chain(self.names, ExpanderContext(self.rng, prices, self._priorities()))

    def _priorities(self) -> str | None:
        for found in self.config_maps.values():
            data = found.get("data")
            said = data.get(KEY) if isinstance(data, dict) else None
            return said if isinstance(said, str) else None
        return None
