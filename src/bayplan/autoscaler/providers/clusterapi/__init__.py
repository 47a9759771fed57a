"""Cluster API: node groups are MachineDeployments, MachineSets and MachinePools."""

from bayplan.autoscaler.providers.clusterapi.provider import check_options, open_provider

__all__ = ["check_options", "open_provider"]
