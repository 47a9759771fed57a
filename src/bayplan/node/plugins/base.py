"""What a plugin is asked: the key of a volume, and the limits of a machine.

A plugin answers for machines of its own cloud alone. What people have written about a type counts
first, then the plugin's table, then what its cloud documents for types that are in no table, which
is only a guess, and said to be one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Protocol, TypeVar

import msgspec

from bayplan.kube.attachtables import OwnLimits
from bayplan.kube.resources import csi_attach_limit_key
from bayplan.kube.volumes import InTreeSources
from bayplan.node.machine import Machine

T = TypeVar("T")
_CSI = "csi-"


class OtherCloudError(Exception):
    """A plugin was asked about a machine that is not of its cloud."""


@dataclass(frozen=True, slots=True)
class Found:
    """A limit, and the rule that gives it."""

    count: int
    rule: str
    is_guess: bool = False
    """Whether the type is in no table."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """Places that are not for pods."""

    root: bool = True
    """The machine's own volume, where that takes one of the places."""
    interfaces: int = 1
    """Network interfaces, where they share places with volumes; the first is always there."""
    volumes: int = 0
    """A number of places on every machine."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms limits are worked out."""

    reserve: Reserve = field(default_factory=Reserve)
    own: OwnLimits = field(default_factory=OwnLimits)


class LimitPlugin(Protocol):
    """One kind of volumes."""

    name: str
    """How its keys end, such as `aws-ebs`."""
    driver: str
    """The CSI driver that took its volumes over; empty if it speaks for many."""
    cloud: str
    """Whose machines it answers for, as provider IDs begin; empty if for all."""

    def limit_key(self, source: InTreeSources) -> str:
        """How the key that a volume counts for ends; empty if it is not of this plugin."""
        ...

    def limits(self, machine: Machine, terms: Terms) -> Mapping[str, Found]:
        """The limits of a machine, by the ends of their keys; OtherCloudError if it is not of the
        plugin's cloud.
        """
        ...


def require_cloud(machine: Machine, plugin: LimitPlugin) -> None:
    """OtherCloudError if the machine is of another cloud than the plugin's."""
    if machine.cloud != plugin.cloud:
        known = f"of {machine.cloud}" if machine.cloud else "of no known cloud"
        raise OtherCloudError(f"{plugin.name}: the node is {known}, not of {plugin.cloud}")


def written(machine: Machine, terms: Terms, plugin: str) -> Found | None:
    """What people have written about the type; nothing is taken off that."""
    row = terms.own.row(plugin, machine.instance_type)
    return None if row is None else Found(row.limit, f"{plugin} {row.types}: as configured")


def named(machine: Machine, *, is_known: bool) -> str:
    """The type as a rule names it."""
    name = machine.instance_type or "no type"
    return name if is_known else f"{name}, not in the table"


def reserved(count: int, terms: Terms, fewest: int = 0) -> tuple[int, str]:
    """What is left without the places that are kept on every machine, and how to say so."""
    kept = terms.reserve.volumes
    return max(fewest, count - kept), f" - {kept} reserved" if kept else ""


def key_of(prefix: str, end: str) -> str:
    """The whole key."""
    if end.startswith(_CSI):
        return csi_attach_limit_key(end.removeprefix(_CSI), prefix)
    return prefix + end


def read_table(name: str, shape: type[T]) -> T:
    """A table of ours."""
    text = resources.files("bayplan.node").joinpath("data", f"{name}.json").read_bytes()
    return msgspec.json.decode(text, type=shape)
