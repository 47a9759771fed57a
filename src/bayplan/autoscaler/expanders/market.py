"""What expanders know beside the question, and what they answer."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from bayplan.fit.signatures.signature import PodSignature


@dataclass(frozen=True, slots=True)
class PodPrices:
    """What pods are worth an hour, as far as the cloud says."""

    shapes: Mapping[PodSignature, float] = field(default_factory=dict)
    stabilization: float = 0.0
    """A small pod, which keeps pods that ask for next to nothing from deciding."""
    gpu_label: str = ""
    """The label that tells which GPU a node has."""


@dataclass(frozen=True, slots=True, eq=False)
class Market:
    """What there is to know beside the groups and the pods."""

    rng: random.Random
    pods: PodPrices = field(default_factory=PodPrices)
    priorities: str | None = None
    """What the priority expander's ConfigMap says; None if there is none."""
