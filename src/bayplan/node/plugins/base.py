"""The protocol of plugins: the key of a volume, and the attach limits of an instance.

A plugin is for instances of its own cloud. The limit is the configured one of the instance type,
else that of the plugin's table, else the cloud's documented default, which is marked as a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bayplan.kube.attachtables import CustomLimits
from bayplan.kube.resources import csi_attach_limit_key
from bayplan.kube.volumes import InTreeSources
from bayplan.node.instance import NodeInstance

_CSI = "csi-"


class OtherCloudError(Exception):
    """The instance is not of the plugin's cloud."""


@dataclass(frozen=True, slots=True)
class ComputedLimit:
    """An attach limit, and the rule it was computed by."""

    count: int
    rule: str
    is_guess: bool = False
    """Whether the instance type is not in a table."""


@dataclass(frozen=True, slots=True)
class ReservedSlots:
    """Attach slots that are not for pods' volumes."""

    root: bool = True
    """Whether the root volume takes a slot."""
    interfaces: int = 1
    """Network interfaces, where they share slots with volumes; at least one."""
    volumes: int = 0
    """A number of slots on every instance."""


@dataclass(frozen=True, slots=True)
class LimitPluginOptions:
    """Options of the plugins: reserved slots and custom limits."""

    reserve: ReservedSlots = field(default_factory=ReservedSlots)
    own: CustomLimits = field(default_factory=CustomLimits)


class LimitPlugin(Protocol):
    """Computes the attach limits of one kind of volume."""

    name: str
    """The end of its keys, such as `aws-ebs`."""
    driver: str
    """The CSI driver of its volumes; empty if there are many."""
    cloud: str
    """The cloud of its instances, as in provider IDs; empty for all."""

    def limit_key(self, source: InTreeSources) -> str:
        """Return the end of the key that a volume counts for; empty if it is not of this plugin."""
        ...

    def limits(
        self, instance: NodeInstance, options: LimitPluginOptions
    ) -> Mapping[str, ComputedLimit]:
        """Return the limits of an instance, by the ends of their keys; OtherCloudError if it is of
        another cloud.
        """
        ...


def require_cloud(instance: NodeInstance, plugin: LimitPlugin) -> None:
    """Raise OtherCloudError if the instance is not of the plugin's cloud."""
    if instance.cloud != plugin.cloud:
        known = f"of {instance.cloud}" if instance.cloud else "of no known cloud"
        raise OtherCloudError(f"{plugin.name}: the node is {known}, not of {plugin.cloud}")


def configured_limit(
    instance: NodeInstance, options: LimitPluginOptions, plugin: str
) -> ComputedLimit | None:
    """Return the configured limit of the instance type, without reserved slots; None if none."""
    row = options.own.row(plugin, instance.instance_type)
    return None if row is None else ComputedLimit(row.limit, f"{plugin} {row.types}: as configured")


def type_text(instance: NodeInstance, *, is_known: bool) -> str:
    """Return the instance type for the text of a rule."""
    name = instance.instance_type or "no type"
    return name if is_known else f"{name}, not in the table"


def without_reserved(count: int, options: LimitPluginOptions, fewest: int = 0) -> tuple[int, str]:
    """Return a limit without the reserved slots, and the text for the rule."""
    kept = options.reserve.volumes
    return max(fewest, count - kept), f" - {kept} reserved" if kept else ""


def key_of(prefix: str, end: str) -> str:
    """Return the complete key."""
    if end.startswith(_CSI):
        return csi_attach_limit_key(end.removeprefix(_CSI), prefix)
    return prefix + end
