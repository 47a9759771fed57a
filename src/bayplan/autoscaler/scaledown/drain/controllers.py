"""The controllers behind pods: whether one is still there, and how many pods it wants.

ReplicaSets, ReplicationControllers and StatefulSets are in the snapshot. Jobs and DaemonSets are no
part of what fits, so they are handed in, as the informers' own copies or from a dump.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bayplan.fit.snapshot import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.workloads import DaemonSet, Job


@dataclass(frozen=True, slots=True)
class Controllers:
    """All controllers that can be looked up."""

    snapshot: Snapshot
    jobs: Mapping[str, Job] = field(default_factory=dict)
    daemon_sets: Mapping[str, DaemonSet] = field(default_factory=dict)

    def find(self, kind: str, key: str) -> KubeObject | None:
        """The controller of this kind and key, if it is there."""
        if kind == "Job":
            return self.jobs.get(key)
        if kind == "DaemonSet":
            return self.daemon_sets.get(key)
        return self.snapshot.cluster.workloads.controllers.get((kind, key))
