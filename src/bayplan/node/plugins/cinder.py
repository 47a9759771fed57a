"""Cinder volumes: OpenStack does not tell them by flavour, so all machines have one limit."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.kube.volumes import InTreeSources
from bayplan.node.machine import Machine
from bayplan.node.plugins.base import Found, Terms, require_cloud, reserved, written

MOST = 256
"""As its CSI driver has it (`--node-volume-attach-limit`) unless told otherwise."""


class Cinder:
    """Cinder volumes."""

    name = "cinder"
    driver = "cinder.csi.openstack.org"
    cloud = "openstack"

    def limit_key(self, source: InTreeSources) -> str:
        """Its own, of Cinder volumes."""
        return self.name if source.cinder is not None else ""

    def limits(self, machine: Machine, terms: Terms) -> Mapping[str, Found]:
        """The same of every flavour, unless people say otherwise."""
        require_cloud(machine, self)
        left, kept = reserved(MOST, terms)
        usual = Found(left, f"cinder, all flavours: {MOST}{kept}")
        return {self.name: written(machine, terms, self.name) or usual}
