"""What a node will publish, before there is one: an autoscaler plans its purchases with it.

A template says no provider ID. Whose machine it will be is then told by whoever asks, or by the CSI
drivers that it will have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from bayplan.kube.attachlimits import PUBLISHED, limit_in
from bayplan.kube.nodes import Node
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES, is_attach_limit
from bayplan.kube.storage import CSINode
from bayplan.node.deciding import Settings, rules_text, wanted
from bayplan.node.plugins import PLUGINS
from bayplan.nodegroups import Template

_CLOUDS = {plugin.driver: plugin.cloud for plugin in PLUGINS if plugin.driver}


def expecting(settings: Callable[[], Settings], cloud: str = "") -> Callable[[Template], Template]:
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
