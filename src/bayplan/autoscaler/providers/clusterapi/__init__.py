"""Cluster API: node groups are MachineDeployments, MachineSets and MachinePools."""
