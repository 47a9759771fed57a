"""Options about attach limits: what node agents publish, and what is expected of new nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cyclopts import Parameter

from bayplan.autoscaler.cloudstate.reader import Expects, as_it_is
from bayplan.base.configfiles import ConfigFileError
from bayplan.cli.errors import BadInput
from bayplan.cli.options.cluster import gates_from
from bayplan.cli.options.flags import Switch
from bayplan.kube.attachtables import LimitsSection, PrefixName
from bayplan.kube.gates import ATTACH_VOLUME_LIMIT
from bayplan.node.agent import SettingsSource
from bayplan.node.decision import expecting
from bayplan.node.settings import SettingsFromFile, settings_of


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LimitTerms:
    """What is published as attach limits."""

    limits_prefix: PrefixName = "attachable-volumes"
    """How keys begin: as Kubernetes had them, as they were proposed first, or both ways."""
    limits_file: Path | None = None
    """Your own limits by plugin and instance type, as YAML; read again when it changes."""
    reserve_root: bool = True
    """Keep a place for the machine's own volume, where it takes one (EBS)."""
    reserve_interfaces: int = 1
    """Network interfaces that machines have, where they share places with volumes (EBS)."""
    reserve_volumes: int = 0
    """Keep so many more places free on every machine."""

    def settings(self, feature_gates: str, *, csi_nodes: bool = False) -> SettingsSource:
        """What the agent is to go by."""
        if self.reserve_interfaces < 1:
            raise BadInput("--reserve-interfaces: every machine has one at least")
        if self.reserve_volumes < 0:
            raise BadInput("--reserve-volumes: cannot be negative")
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
    """How attach limits are published."""

    all_nodes: Switch = False
    """Publish for every node of the cluster, not just for this one; replicas elect a leader."""
    write_csinodes: Switch = False
    """Write limits also into the CSINodes of drivers that say none themselves."""
    terms: LimitTerms = field(default_factory=LimitTerms)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ExpectedLimits:
    """Attach limits that new nodes will publish."""

    expect_limits: Switch = False
    """Plan with the attach limits that `bayplan node-agent --limits` will publish on new nodes,
    where a group's template says none; the options below are to be the same as there."""
    expect_limits_cloud: Literal["aws", "gce", "azure", "openstack"] | None = None
    """Whose machines new nodes are; without it, their CSI drivers tell."""
    terms: LimitTerms = field(default_factory=LimitTerms)

    def expects(self, feature_gates: str) -> Expects:
        """What is added to templates."""
        if not self.expect_limits:
            return as_it_is
        return expecting(self.terms.settings(feature_gates), self.expect_limits_cloud or "")
