"""Options of attach limits: what node agents publish, and what new nodes will publish."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cyclopts import Parameter

from bayplan.autoscaler.cloudstate.reader import AmendTemplate, unchanged
from bayplan.base.configfiles import ConfigFileError
from bayplan.cli.errors import BadInput
from bayplan.cli.options.cluster import gates_from
from bayplan.cli.options.flags import Switch
from bayplan.kube.attachtables import LimitsSection, PrefixName
from bayplan.kube.gates import ATTACH_VOLUME_LIMIT
from bayplan.node.agent import SettingsSource
from bayplan.node.decision import expect_limits
from bayplan.node.settings import SettingsFromFile, settings_of


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LimitTerms:
    """The values of published attach limits."""

    limits_prefix: PrefixName = "attachable-volumes"
    """The prefix of the keys: Kubernetes' former one, the one first proposed, or both."""
    limits_file: Path | None = None
    """A YAML file of your own limits by plugin and instance type; reloaded when it changes."""
    reserve_root: bool = True
    """Reserve an attach slot for the root volume, where it uses one (EBS)."""
    reserve_interfaces: int = 1
    """The number of network interfaces, where they share attach slots with volumes (EBS)."""
    reserve_volumes: int = 0
    """The number of further attach slots to reserve on every machine."""

    def settings(self, feature_gates: str, *, csi_nodes: bool = False) -> SettingsSource:
        """Return the agent's settings."""
        if self.reserve_interfaces < 1:
            raise BadInput("--reserve-interfaces: must be 1 or more")
        if self.reserve_volumes < 0:
            raise BadInput("--reserve-volumes: must be 0 or more")
        section = LimitsSection(
            prefix=self.limits_prefix,
            reserve_root=self.reserve_root,
            interfaces=self.reserve_interfaces,
            reserve=self.reserve_volumes,
            csi_nodes=csi_nodes,
        )
        enabled = gates_from(feature_gates).enabled(ATTACH_VOLUME_LIMIT)
        base = settings_of(section, enabled=enabled)
        if self.limits_file is None:
            return lambda: base
        try:
            return SettingsFromFile(base, self.limits_file)
        except ConfigFileError as error:
            raise BadInput(f"--limits-file: {error}") from None


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Publishing of attach limits."""

    all_nodes: Switch = False
    """Publish for all nodes of the cluster instead of this one; replicas elect a leader."""
    write_csinodes: Switch = False
    """Also write limits to the CSINodes of drivers that report none."""
    terms: LimitTerms = field(default_factory=LimitTerms)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ExpectedLimits:
    """Attach limits that new nodes will publish."""

    expect_limits: Switch = False
    """Plan with the attach limits that `bayplan node-agent --limits` will publish on new nodes, if
    a group's template has none; give the options below the same values as there."""
    expect_limits_cloud: Literal["aws", "gce", "azure", "openstack"] | None = None
    """The cloud of new nodes; by default derived from their CSI drivers."""
    terms: LimitTerms = field(default_factory=LimitTerms)

    def expects(self, feature_gates: str) -> AmendTemplate:
        """Return the function that adds limits to templates."""
        if not self.expect_limits:
            return unchanged
        return expect_limits(self.terms.settings(feature_gates), self.expect_limits_cloud or "")
