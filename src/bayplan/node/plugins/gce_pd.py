"""Attach limits of GCE disks, by machine type; a label of the node can override them."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.kube.pdlimits import PD_DRIVER, pd_limit
from bayplan.kube.volumes import InTreeSources
from bayplan.node.instance import NodeInstance
from bayplan.node.plugins.base import (
    ComputedLimit,
    LimitPluginOptions,
    configured_limit,
    require_cloud,
    without_reserved,
)


class GcePdLimits:
    """Attach limits of GCE disks."""

    name = "gce-pd"
    driver = PD_DRIVER
    cloud = "gce"

    def limit_key(self, source: InTreeSources) -> str:
        """Return `gce-pd` for GCE disks."""
        return self.name if source.gce_persistent_disk is not None else ""

    def limits(
        self, instance: NodeInstance, options: LimitPluginOptions
    ) -> Mapping[str, ComputedLimit]:
        """Return the limit of the machine type, or that of the node's label."""
        require_cloud(instance, self)
        return {
            self.name: configured_limit(instance, options, self.name) or _found(instance, options)
        }


def _found(instance: NodeInstance, options: LimitPluginOptions) -> ComputedLimit:
    known = pd_limit(instance.instance_type, instance.labels)
    left, kept = without_reserved(known.count, options)
    return ComputedLimit(left, f"gce-pd {known.rule}{kept}", known.is_guess)
