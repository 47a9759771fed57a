"""The status ConfigMap: health of the cluster and of every group, as in Cluster Autoscaler.

Transition times are kept from status to status. `data.featureGates` has the feature gates, by which
the scheduler knows whether the autoscaler supports pods that wait for CSI drivers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import yaml

from bayplan.autoscaler.cloudstate.backoff import BackoffStatus
from bayplan.autoscaler.clusterstate.registry import GroupState
from bayplan.autoscaler.expected_drivers import DriverOutlier
from bayplan.kube.gates import FeatureGates
from bayplan.kube.times import timestamp
from bayplan.nodegroups import CloudNodeGroup

LAST_UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"
Fields = dict[str, object]
_TIMES = frozenset({"time", "lastProbeTime"})
"""Fields with the time of the status itself."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroupStatus:
    """The status of one node group."""

    group: CloudNodeGroup
    state: GroupState
    healthy: bool = True
    backoff: BackoffStatus | None = None
    in_progress: bool = False
    candidates: int = 0
    being_deleted: int = 0
    problems: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    """The CSI drivers that its next node is expected to have."""
    outliers: tuple[DriverOutlier, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ClusterStatus:
    """The status of the cluster and its node groups."""

    healthy: bool = True
    needed: bool = False
    """Whether there are unschedulable pods that no scale-up would help."""
    message: str = ""
    groups: tuple[NodeGroupStatus, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class StatusDocument:
    """A status before serialization: most are like the previous one, and are not written."""

    fields: Fields
    gates: FeatureGates

    def data(self) -> dict[str, str]:
        """Return the ConfigMap's data."""
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in self.gates.as_dict().items())
        text = yaml.dump(self.fields, Dumper=_Dumper, sort_keys=False)
        return {"status": text, "featureGates": gates}


def same_but_for_time(one: StatusDocument, other: StatusDocument) -> bool:
    """Whether two statuses are equal except for their times."""
    return one.gates == other.gates and _timeless(one.fields) == _timeless(other.fields)


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {name: _timeless(one) for name, one in value.items() if name not in _TIMES}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


@dataclass(slots=True)
class StatusWriter:
    """Builds statuses, and remembers transition times."""

    gates: FeatureGates
    _since: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def build(self, status: ClusterStatus, now: datetime) -> StatusDocument:
        """Build the status of a moment."""
        moment = timestamp(now)
        names = {one.group.id for one in status.groups}
        self._since = {key: kept for key, kept in self._since.items() if key[1] in {"", *names}}
        groups = [self._group(one, moment) for one in status.groups]
        fields: Fields = {
            "time": now.strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC"),
            "autoscalerStatus": "Running",
            **({"message": status.message} if status.message else {}),
            "clusterWide": self._cluster_wide(status, moment),
            "nodeGroups": groups,
        }
        return StatusDocument(fields, self.gates)

    def _cluster_wide(self, status: ClusterStatus, moment: str) -> Fields:
        counts = _node_counts(status.groups)
        is_in_progress = any(one.in_progress for one in status.groups)
        scale_up = "InProgress" if is_in_progress else "Needed" if status.needed else "NoActivity"
        candidates = sum(one.candidates for one in status.groups)
        health = "Healthy" if status.healthy else "Unhealthy"
        return {
            "health": {
                "status": health,
                "nodeCounts": counts,
                **self._at(("h", ""), health, moment),
            },
            "scaleUp": {"status": scale_up, **self._at(("u", ""), scale_up, moment)},
            "scaleDown": self._down("", candidates, moment),
        }

    def _group(self, one: NodeGroupStatus, moment: str) -> Fields:
        name, group = one.group.id, one.group
        health = "Healthy" if one.healthy else "Unhealthy"
        sizes = {
            "cloudProviderTarget": one.state.target,
            "minSize": group.min_size,
            "maxSize": group.max_size,
        }
        counted: Fields = {"status": health, "nodeCounts": _node_counts([one]), **sizes}
        found: Fields = {
            "name": name,
            "health": {**counted, **self._at(("h", name), health, moment)},
            "scaleUp": self._up(one, moment),
            "scaleDown": self._down(name, one.candidates, moment),
        }
        return {**found, "problems": list(one.problems)} if one.problems else found

    def _up(self, one: NodeGroupStatus, moment: str) -> Fields:
        backoff = one.backoff
        status = "Backoff" if backoff else "InProgress" if one.in_progress else "NoActivity"
        fields: Fields = {"status": status}
        if backoff is not None:
            fields["backoffInfo"] = {"errorCode": backoff.code, "errorMessage": backoff.message}
        return {**fields, **self._at(("u", one.group.id), status, moment)}

    def _down(self, name: str, candidates: int, moment: str) -> Fields:
        status = "CandidatesPresent" if candidates else "NoCandidates"
        fields: Fields = {"status": status}
        if candidates:
            fields["candidates"] = candidates
        return {**fields, **self._at(("d", name), status, moment)}

    def _at(self, what: tuple[str, str], status: str, moment: str) -> Fields:
        known, since = self._since.get(what, ("", moment))
        if known != status:
            since = moment
            self._since[what] = (status, moment)
        return {"lastProbeTime": moment, "lastTransitionTime": since}


class _Dumper(yaml.CSafeDumper):
    """Writes YAML without anchors and aliases."""

    def ignore_aliases(self, _: object) -> bool:
        return True


def _node_counts(groups: Sequence[NodeGroupStatus]) -> Fields:
    """Return the numbers of nodes by state."""
    states = [one.state for one in groups]
    being_deleted = sum(one.being_deleted for one in groups)
    missing_drivers = sum(len(one.missing_drivers) for one in states)
    registered: Fields = {
        "total": sum(one.registered for one in states),
        "ready": sum(one.ready for one in states),
        "notStarted": sum(len(one.not_started) for one in states),
    }
    if being_deleted:
        registered["beingDeleted"] = being_deleted
    unready = sum(len(one.unready) for one in states) + missing_drivers
    registered["unready"] = {"total": unready, "resourceUnready": missing_drivers}
    return {
        "registered": registered,
        "longUnregistered": sum(len(one.long_unregistered) for one in states),
        "unregistered": sum(len(one.unregistered) for one in states),
    }
