"""What a node is to publish, the smallest change that gets it there, and what one will publish.

A key is ours if the node's annotation says so. What we no longer stand for is removed; a key of
somebody else is never touched, unless it is one that we publish ourselves: then it becomes ours.
Capacity and allocatable get the same number, since a kubelet copies the one over the other.

A template says no provider ID. Whose machine it will be is then told by whoever asks, or by the CSI
drivers that it will have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from bayplan.kube.attachlimits import PUBLISHED, limit_in, published_counts, published_rules
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Node
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES, is_attach_limit
from bayplan.kube.storage import CSINode
from bayplan.node.machine import Machine, machine_of, said_counts, written_counts
from bayplan.node.plugins import PLUGINS, Found, LimitPlugin, OtherCloudError
from bayplan.node.plugins.base import Terms, key_of
from bayplan.nodegroups import TemplateNodeInfo

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Settings:
    """What is published, and how."""

    terms: Terms = field(default_factory=Terms)
    prefixes: tuple[str, ...] = ATTACH_LIMIT_PREFIXES[:1]
    csi_nodes: bool = False
    """Whether drivers that say no limit in their CSINode get one there, too."""
    enabled: bool = True
    """Without it (gate AttachVolumeLimit off) everything that was published is removed."""
    plugins: tuple[LimitPlugin, ...] = PLUGINS


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be said of one node."""

    keys: Mapping[str, Found] = field(default_factory=dict)
    """In its status."""
    drivers: Mapping[str, Found] = field(default_factory=dict)
    """In its CSINode, of drivers that say nothing themselves."""

    @property
    def guesses(self) -> tuple[Found, ...]:
        """Those whose instance type is in no table."""
        unique = {one.rule: one for one in self.keys.values() if one.is_guess}
        return tuple(unique.values())


def wanted(node: Node, csinode: CSINode | None, settings: Settings) -> Wanted:
    """What is to be said of a node."""
    if not settings.enabled:
        return Wanted()
    machine, keys, drivers = machine_of(node, csinode), {}, {}
    for plugin in settings.plugins:
        for end, found in _limits(plugin, machine, settings.terms).items():
            keys.update({key_of(prefix, end): found for prefix in settings.prefixes})
            drivers[plugin.driver or end.removeprefix("csi-")] = found
    silent = {name for name, count in machine.drivers.items() if count is None}
    own = {name: one for name, one in drivers.items() if name in silent and settings.csi_nodes}
    return Wanted(keys, own)


def _limits(plugin: LimitPlugin, machine: Machine, terms: Terms) -> Mapping[str, Found]:
    try:
        return plugin.limits(machine, terms)
    except OtherCloudError:
        return {}


def node_change(node: Node, keys: Mapping[str, Found]) -> Json | None:
    """The merge patch for the node's status; None if it is as it should be."""
    ours = published_rules(node.metadata.annotations)
    gone = ours.keys() - keys.keys()
    status = {
        name: change
        for name in ("capacity", "allocatable")
        if (change := _amounts(getattr(node.status, name), keys, gone))
    }
    if not status and ours == {key: found.rule for key, found in keys.items()}:
        return None
    noted = rules_text(keys) if keys else None
    meta = {"uid": node.metadata.uid, "annotations": {PUBLISHED: noted}}
    return {"metadata": meta, "status": status} if status else {"metadata": meta}


def rules_text(keys: Mapping[str, Found]) -> str:
    """Which keys are ours, and why each is what it is, as the annotation has it."""
    return _json({key: keys[key].rule for key in sorted(keys)})


def _amounts(
    there: Mapping[str, Quantity], keys: Mapping[str, Found], gone: set[str]
) -> dict[str, str | None]:
    change: dict[str, str | None] = {key: None for key in sorted(gone) if key in there}
    for key, found in keys.items():
        if key not in there or limit_in(there[key]) != found.count:
            change[key] = str(found.count)
    return change


def csinode_change(csinode: CSINode, drivers: Mapping[str, Found]) -> Json | None:
    """The strategic patch for the CSINode; None if it is as it should be.

    It names the version that it was worked out from: whoever else writes a CSINode, the kubelet for
    its drivers, must not be overrun.
    """
    said, mine = said_counts(csinode), written_counts(csinode)
    counts = {name: one.count for name, one in sorted(drivers.items()) if name in said}
    entries: list[Json] = [
        {"name": name, "allocatable": {"count": count}}
        for name, count in counts.items()
        if said[name] != count
    ]
    entries += [{"name": name, "allocatable": None} for name in sorted(mine.keys() - counts.keys())]
    if not entries and counts == published_counts(csinode.metadata.annotations):
        return None
    noted = _json(counts) if counts else None
    meta: Json = {
        "uid": csinode.metadata.uid,
        "resourceVersion": csinode.metadata.resource_version,
        "annotations": {PUBLISHED: noted},
    }
    return {"metadata": meta, "spec": {"drivers": entries}} if entries else {"metadata": meta}


def _json(plain: object) -> str:
    return msgspec.json.encode(plain).decode()


_CLOUDS = {plugin.driver: plugin.cloud for plugin in PLUGINS if plugin.driver}


def expecting(
    settings: Callable[[], Settings], cloud: str = ""
) -> Callable[[TemplateNodeInfo], TemplateNodeInfo]:
    """Adds to templates what an agent of these settings will publish."""
    return lambda one: replace(one, node=with_limits(one.node, one.csi_node, settings(), cloud))


def with_limits(node: Node, csinode: CSINode | None, settings: Settings, cloud: str = "") -> Node:
    """The node with the limits that an agent of these settings would publish on it, but for those
    that the template says itself.
    """
    every = wanted(_of_a_cloud(node, cloud or _cloud(csinode)), csinode, settings).keys
    said = _said(node)
    keys = {key: found for key, found in every.items() if _end(key) not in said}
    if not keys:
        return node
    limits = {key: str(found.count) for key, found in keys.items()}
    status = msgspec.structs.replace(
        node.status,
        capacity={**node.status.capacity, **limits},
        allocatable={**node.status.allocatable, **limits},
    )
    annotations = {**node.metadata.annotations, PUBLISHED: rules_text(keys)}
    metadata = msgspec.structs.replace(node.metadata, annotations=annotations)
    return msgspec.structs.replace(node, metadata=metadata, status=status)


def _said(node: Node) -> set[str]:
    """How the keys end under which a node says a limit, whatever their prefix."""
    written = node.status.allocatable.items()
    return {_end(key) for key, one in written if is_attach_limit(key) and limit_in(one) is not None}


def _end(key: str) -> str:
    for prefix in ATTACH_LIMIT_PREFIXES:
        key = key.removeprefix(prefix)
    return key


def _cloud(csinode: CSINode | None) -> str:
    drivers = csinode.spec.drivers if csinode is not None else []
    clouds = {_CLOUDS[one.name] for one in drivers if one.name in _CLOUDS}
    return clouds.pop() if len(clouds) == 1 else ""


def _of_a_cloud(node: Node, cloud: str) -> Node:
    if node.spec.provider_id or not cloud:
        return node
    spec = msgspec.structs.replace(node.spec, provider_id=f"{cloud}://")
    return msgspec.structs.replace(node, spec=spec)
