"""The desired attach limits of a node, the patches to reach them, and the limits of templates.

A key is ours if the node's annotation names it. Keys of ours that are no longer desired are
removed; other keys are not touched, unless we publish the same key: then it becomes ours. Capacity
and allocatable get the same number, since a kubelet copies the one to the other.

A template has no provider ID. Its cloud is given by the caller, or found by its CSI drivers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from bayplan.kube.attachlimits import (
    PUBLISHED_LIMITS,
    parse_attach_limit,
    published_counts,
    published_rules,
)
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Node
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES, is_attach_limit
from bayplan.kube.storage import CSINode
from bayplan.node.instance import NodeInstance, driver_counts, instance_of, own_counts
from bayplan.node.plugins import PLUGINS, ComputedLimit, LimitPlugin, OtherCloudError
from bayplan.node.plugins.base import LimitPluginOptions, key_of
from bayplan.nodegroups import TemplateNodeInfo

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class AttachLimitSettings:
    """Which attach limits are published, and where."""

    options: LimitPluginOptions = field(default_factory=LimitPluginOptions)
    prefixes: tuple[str, ...] = ATTACH_LIMIT_PREFIXES[:1]
    csi_nodes: bool = False
    """Whether limits are also written to CSINodes, for drivers without one."""
    enabled: bool = True
    """If not (gate AttachVolumeLimit off), everything that was published is removed."""
    plugins: tuple[LimitPlugin, ...] = PLUGINS


@dataclass(frozen=True, slots=True)
class DesiredLimits:
    """The limits to publish on one node."""

    keys: Mapping[str, ComputedLimit] = field(default_factory=dict)
    """In its status, by key."""
    drivers: Mapping[str, ComputedLimit] = field(default_factory=dict)
    """In its CSINode, by driver, for drivers without a limit of their own."""

    @property
    def guesses(self) -> tuple[ComputedLimit, ...]:
        """The limits of instance types that are not in a table."""
        unique = {one.rule: one for one in self.keys.values() if one.is_guess}
        return tuple(unique.values())


def desired_limits(
    node: Node, csinode: CSINode | None, settings: AttachLimitSettings
) -> DesiredLimits:
    """Return the limits to publish on a node."""
    if not settings.enabled:
        return DesiredLimits()
    instance, keys, drivers = instance_of(node, csinode), {}, {}
    for plugin in settings.plugins:
        for end, found in _limits(plugin, instance, settings.options).items():
            keys.update({key_of(prefix, end): found for prefix in settings.prefixes})
            drivers[plugin.driver or end.removeprefix("csi-")] = found
    without_limit = {name for name, count in instance.drivers.items() if count is None}
    own = {
        name: one for name, one in drivers.items() if name in without_limit and settings.csi_nodes
    }
    return DesiredLimits(keys, own)


def _limits(
    plugin: LimitPlugin, instance: NodeInstance, options: LimitPluginOptions
) -> Mapping[str, ComputedLimit]:
    try:
        return plugin.limits(instance, options)
    except OtherCloudError:
        return {}


def node_change(node: Node, keys: Mapping[str, ComputedLimit]) -> Json | None:
    """Return the merge patch for the node's status; None if nothing has to change."""
    ours = published_rules(node.metadata.annotations)
    removed = ours.keys() - keys.keys()
    status = {
        name: change
        for name in ("capacity", "allocatable")
        if (change := _amounts(getattr(node.status, name), keys, removed))
    }
    if not status and ours == {key: found.rule for key, found in keys.items()}:
        return None
    annotation = rules_text(keys) if keys else None
    meta = {"uid": node.metadata.uid, "annotations": {PUBLISHED_LIMITS: annotation}}
    return {"metadata": meta, "status": status} if status else {"metadata": meta}


def rules_text(keys: Mapping[str, ComputedLimit]) -> str:
    """Return the annotation: our keys, each with the rule of its number."""
    return _json({key: keys[key].rule for key in sorted(keys)})


def _amounts(
    present: Mapping[str, Quantity], keys: Mapping[str, ComputedLimit], removed: set[str]
) -> dict[str, str | None]:
    change: dict[str, str | None] = {key: None for key in sorted(removed) if key in present}
    for key, found in keys.items():
        if key not in present or parse_attach_limit(present[key]) != found.count:
            change[key] = str(found.count)
    return change


def csinode_change(csinode: CSINode, drivers: Mapping[str, ComputedLimit]) -> Json | None:
    """Return the strategic patch for the CSINode; None if nothing has to change.

    It has the resource version that it was computed from, so that it does not overwrite a change of
    the kubelet.
    """
    present, ours = driver_counts(csinode), own_counts(csinode)
    counts = {name: one.count for name, one in sorted(drivers.items()) if name in present}
    entries: list[Json] = [
        {"name": name, "allocatable": {"count": count}}
        for name, count in counts.items()
        if present[name] != count
    ]
    entries += [{"name": name, "allocatable": None} for name in sorted(ours.keys() - counts.keys())]
    if not entries and counts == published_counts(csinode.metadata.annotations):
        return None
    annotation = _json(counts) if counts else None
    meta: Json = {
        "uid": csinode.metadata.uid,
        "resourceVersion": csinode.metadata.resource_version,
        "annotations": {PUBLISHED_LIMITS: annotation},
    }
    return {"metadata": meta, "spec": {"drivers": entries}} if entries else {"metadata": meta}


def _json(plain: object) -> str:
    return msgspec.json.encode(plain).decode()


_CLOUDS = {plugin.driver: plugin.cloud for plugin in PLUGINS if plugin.driver}


def expect_limits(
    settings: Callable[[], AttachLimitSettings], cloud: str = ""
) -> Callable[[TemplateNodeInfo], TemplateNodeInfo]:
    """Return a function that adds to templates what an agent with these settings publishes."""
    return lambda one: replace(one, node=with_limits(one.node, one.csi_node, settings(), cloud))


def with_limits(
    node: Node, csinode: CSINode | None, settings: AttachLimitSettings, cloud: str = ""
) -> Node:
    """Return the node with the limits that an agent with these settings would publish, except those
    that the template has itself.
    """
    desired = desired_limits(_with_cloud(node, cloud or _cloud(csinode)), csinode, settings).keys
    stated = _stated_keys(node)
    keys = {key: found for key, found in desired.items() if _end(key) not in stated}
    if not keys:
        return node
    limits = {key: str(found.count) for key, found in keys.items()}
    status = msgspec.structs.replace(
        node.status,
        capacity={**node.status.capacity, **limits},
        allocatable={**node.status.allocatable, **limits},
    )
    annotations = {**node.metadata.annotations, PUBLISHED_LIMITS: rules_text(keys)}
    metadata = msgspec.structs.replace(node.metadata, annotations=annotations)
    return msgspec.structs.replace(node, metadata=metadata, status=status)


def _stated_keys(node: Node) -> set[str]:
    """Return the ends of the keys under which a node has a limit, with any prefix."""
    written = node.status.allocatable.items()
    return {
        _end(key)
        for key, one in written
        if is_attach_limit(key) and parse_attach_limit(one) is not None
    }


def _end(key: str) -> str:
    for prefix in ATTACH_LIMIT_PREFIXES:
        key = key.removeprefix(prefix)
    return key


def _cloud(csinode: CSINode | None) -> str:
    drivers = csinode.spec.drivers if csinode is not None else []
    clouds = {_CLOUDS[one.name] for one in drivers if one.name in _CLOUDS}
    return clouds.pop() if len(clouds) == 1 else ""


def _with_cloud(node: Node, cloud: str) -> Node:
    if node.spec.provider_id or not cloud:
        return node
    spec = msgspec.structs.replace(node.spec, provider_id=f"{cloud}://")
    return msgspec.structs.replace(node, spec=spec)
