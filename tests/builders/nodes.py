"""Builders of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from bayplan.kube.meta import Condition, Quantity
from bayplan.kube.nodes import ContainerImage, Node, Taint, TaintEffect
from tests.builders.base import HOSTNAME, REGION, ZONE, Builder


class NodeBuilder(Builder[Node]):
    """A node with its hostname label, four cpus, 8 GiB and room for 110 pods unless said."""

    def __init__(self, name: str) -> None:
        super().__init__(Node(), name)
        self.label(HOSTNAME, name).capacity(cpu="4", memory="8Gi", pods=110)

    def capacity(self, amounts: Mapping[str, Quantity] | None = None, **more: Quantity) -> Self:
        """Set amounts, in capacity and allocatable; underscores in names stand for hyphens."""
        said = {**(amounts or {}), **{name.replace("_", "-"): q for name, q in more.items()}}
        self._built.status.capacity = {**self._built.status.capacity, **said}
        self._built.status.allocatable = {**self._built.status.allocatable, **said}
        return self

    def zone(self, name: str, region: str = "") -> Self:
        """Put it into a zone."""
        self.label(ZONE, name)
        return self.label(REGION, region) if region else self

    def taint(self, key: str, value: str = "", effect: TaintEffect = "NoSchedule") -> Self:
        """Taint it."""
        taints = self._built.spec.taints
        self._built.spec.taints = [*taints, Taint(key=key, value=value, effect=effect)]
        return self

    def unschedulable(self) -> Self:
        """Cordon it."""
        self._built.spec.unschedulable = True
        return self

    def image(self, *names: str, size: int) -> Self:
        """Say that it has an image."""
        held = ContainerImage(names=list(names), size_bytes=size)
        self._built.status.images = [*self._built.status.images, held]
        return self

    def ready(self, status: str = "True") -> Self:
        """Say whether it is ready."""
        self._built.status.conditions = [Condition(type="Ready", status=status)]
        return self

    def provider_id(self, provider_id: str) -> Self:
        """Say what the cloud calls it."""
        self._built.spec.provider_id = provider_id
        return self


def make_node(name: str = "node") -> NodeBuilder:
    """Start a node."""
    return NodeBuilder(name)
