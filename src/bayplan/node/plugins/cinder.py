"""Attach limits of Cinder volumes: one for all instances, since OpenStack has none by flavour."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.kube.volumes import InTreeSources
from bayplan.node.instance import NodeInstance
from bayplan.node.plugins.base import (
    ComputedLimit,
    LimitPluginOptions,
    configured_limit,
    require_cloud,
    without_reserved,
)

MAX_VOLUMES = 256
"""The default of its CSI driver (`--node-volume-attach-limit`)."""


class CinderLimits:
    """Attach limits of Cinder volumes."""

    name = "cinder"
    driver = "cinder.csi.openstack.org"
    cloud = "openstack"

    def limit_key(self, source: InTreeSources) -> str:
        """Return `cinder` for Cinder volumes."""
        return self.name if source.cinder is not None else ""

    def limits(
        self, instance: NodeInstance, options: LimitPluginOptions
    ) -> Mapping[str, ComputedLimit]:
        """Return the same limit for every flavour, unless another is configured."""
        require_cloud(instance, self)
        left, kept = without_reserved(MAX_VOLUMES, options)
        usual = ComputedLimit(left, f"cinder, all flavours: {MAX_VOLUMES}{kept}")
        return {self.name: configured_limit(instance, options, self.name) or usual}
