"""The chain of expanders: each filters the options that the one before it kept.

Of several options in the end, one is chosen at random. `random` leaves only one, and `cheapest-mix`
mixes all that are left, so each of them must be the last.

Choosing is pure. `grpc` needs the answer of another process, which `Chain.settle` awaits between
two runs of the same decision.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import TypeVar

from bayplan.autoscaler.estimate.options import (
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
from bayplan.autoscaler.expanders.grpcplugin.answers import AnswerNeededError, RemoteAnswers
from bayplan.autoscaler.expanders.grpcplugin.client import (
    GrpcExpander,
    RemoteExpander,
    read_expander_config,
)
from bayplan.autoscaler.expanders.mix import cheapest_mix
from bayplan.autoscaler.expanders.price import PodPrices, cheapest, pod_prices
from bayplan.autoscaler.options import ScaleUpOptions
from bayplan.autoscaler.plan import ExpanderNote
from bayplan.base.suggestions import suggestion
from bayplan.client import Untyped
from bayplan.fit import Snapshot
from bayplan.kube.pods import Pod
from bayplan.nodegroups import Provider

RANDOM = "random"
PRICE = "price"
PRIORITY = "priority"
GRPC = "grpc"
CHEAPEST_MIX = "cheapest-mix"
T = TypeVar("T")
SIMPLE: Mapping[str, Callable[[Sequence[NodeGroupOption]], list[NodeGroupOption]]] = {
    "most-pods": most_pods,
    "least-waste": least_waste,
    "least-nodes": least_nodes,
}
NAMES = (RANDOM, *SIMPLE, PRICE, PRIORITY, GRPC, CHEAPEST_MIX)
LAST = frozenset({RANDOM, CHEAPEST_MIX})
"""Expanders that leave no choice for others."""


class ExpanderError(ValueError):
    """Unknown expanders, or an invalid order of them."""


def parse_expanders(text: str) -> tuple[str, ...]:
    """Parse the flag, expanders separated by commas; ExpanderError if it is invalid."""
    names = tuple(part.strip() for part in text.split(","))
    for at, name in enumerate(names):
        if name not in NAMES:
            raise ExpanderError(f"unknown expander {name[:40]!r}{suggestion(name, NAMES)}")
        if name in names[:at]:
            raise ExpanderError(f"expander {name} is listed twice")
        if at and names[at - 1] in LAST:
            raise ExpanderError(f"expander {names[at - 1]} must be the last; {name} follows it")
    return names


def check_expanders(options: ScaleUpOptions) -> tuple[str, ...]:
    """Return the expanders of these options; ExpanderError or ConfigFileError if one is invalid."""
    names = parse_expanders(options.expander)
    if GRPC in names:
        try:
            read_expander_config(options.grpc_expander_url, options.grpc_expander_cert)
        except ValueError as error:
            raise ExpanderError(str(error)) from None
    return names


@asynccontextmanager
async def open_remote(options: ScaleUpOptions) -> AsyncIterator[RemoteExpander | None]:
    """Yield the program of the grpc expander; None if that is not among the expanders."""
    if GRPC not in parse_expanders(options.expander):
        yield None
        return
    config = read_expander_config(options.grpc_expander_url, options.grpc_expander_cert)
    async with GrpcExpander(config) as program:
        yield program


@dataclass(frozen=True, slots=True, eq=False)
class ExpanderContext:
    """Inputs of expanders besides the options: randomness, prices of pods, priorities."""

    rng: Random
    pods: PodPrices = field(default_factory=PodPrices)
    priorities: str | None = None
    """The text of the priority expander's ConfigMap; None if it does not exist."""
    remote: RemoteExpander | None = None
    """The program of the grpc expander."""
    answers: RemoteAnswers = field(default_factory=RemoteAnswers)
    """The answers of this program so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Expanders in their order, with their inputs."""

    names: tuple[str, ...]
    context: ExpanderContext

    def choose(self, request: ExpanderRequest) -> ExpanderChoice:
        """Choose new nodes from the options."""
        left, notes = list(request.options), list[ExpanderNote]()
        for name in self.names:
            if name == CHEAPEST_MIX:
                return cheapest_mix(left, request, tuple(notes))
            left, more = self._filter(name, left, request)
            notes += more
            if not left:
                return ExpanderChoice([], tuple(notes))
        chosen = self.context.rng.choice(left)
        return ExpanderChoice([chosen.new_nodes()], tuple(notes))

    async def settle(self, decision: Callable[[], T]) -> T:
        """Return the result of a decision by this expander; whenever it needs an answer of another
        process, await it and run the decision again, with the same random numbers.
        """
        context, state = self.context, self.context.rng.getstate()
        while True:
            try:
                return decision()
            except AnswerNeededError as needed:
                if context.remote is None:
                    raise
                context.answers.add(needed.call, await context.remote.best_options(needed.call))
                context.rng.setstate(state)

    def _filter(
        self, name: str, left: list[NodeGroupOption], request: ExpanderRequest
    ) -> tuple[list[NodeGroupOption], list[ExpanderNote]]:
        match name:
            case "priority":
                return prioritised(left, self.context.priorities)
            case "price":
                return cheapest(left, self.context.pods, len(request.snapshot.cluster.slots)), []
            case "grpc":
                return self.context.answers.filter(left)
            case "random":
                return [self.context.rng.choice(left)], []
            case _:
                return SIMPLE[name](left), []


@dataclass(frozen=True, slots=True, eq=False)
class ExpanderFactory:
    """Makes the expanders that the flag names."""

    names: tuple[str, ...]
    provider: Provider
    snapshot: Snapshot
    rng: Random
    config_maps: Mapping[str, Untyped]
    """The priority expander's ConfigMap, if it exists."""
    remote: RemoteExpander | None = None
    """The program of the grpc expander."""

    async def expander(self, waiting: Sequence[Pod], now: datetime) -> Chain:
        """Return the expander for these pods."""
        prices = PodPrices()
        if waiting and PRICE in self.names:
            prices = await pod_prices(self.provider, self.snapshot, waiting, now)
        context = ExpanderContext(self.rng, prices, self._priorities(), self.remote)
        return Chain(self.names, context)

    def _priorities(self) -> str | None:
        for found in self.config_maps.values():
            data = found.get("data")
            more = data.get(KEY) if isinstance(data, dict) else None
            return more if isinstance(more, str) else None
        return None
