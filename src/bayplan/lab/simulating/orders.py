"""What one run needs, whole in itself: it can be sent to another process, or to another machine.

A cluster file is taken with the files that it names written into it, and with what was set on the
command line; the same order gives the same result, to the byte, wherever it is carried out.
"""

from __future__ import annotations

import hashlib

import msgspec

FORMAT = 1


class Variant(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A cluster and how our daemons are told to behave in it."""

    name: str
    cluster: dict[str, object]
    """The cluster file, with everything that it names in it."""
    source: str = "cluster"
    """What it is called in errors."""
    gates: str = ""
    """Feature gates, as a flag has them."""
    expander: str = ""
    """How the autoscaler chooses among groups; empty for its own way."""
    crew: str = ""
    """Which daemons are at work, with commas."""


class Order(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One run."""

    variant: Variant
    seed: int
    seconds: float
    points: int
    trace: str = ""
    """Workloads beside the cluster file's, as a trace file in CSV."""
    trace_scale: float = 1.0
    """By how much its arrivals are farther apart."""
    format: int = FORMAT

    @property
    def title(self) -> str:
        """How a run is called among others."""
        return f"{self.variant.name}, seed {self.seed}"


class Inputs(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """All runs of a comparison: every variant with every seed."""

    variants: list[Variant]
    seeds: list[int]
    seconds: float
    points: int
    trace: str = ""
    trace_name: str = ""
    """What the trace is called in reports."""
    trace_scale: float = 1.0

    def orders(self) -> list[Order]:
        """The runs, in order: by variant, then by seed."""
        return [
            Order(
                variant=variant,
                seed=seed,
                seconds=self.seconds,
                points=self.points,
                trace=self.trace,
                trace_scale=self.trace_scale,
            )
            for variant in self.variants
            for seed in self.seeds
        ]


def key_of(order: Order, version: str) -> str:
    """By which the result of an order is found again: a digest of all that it depends on."""
    said = msgspec.json.encode([version, order], order="sorted")
    return hashlib.sha256(said).hexdigest()[:32]
