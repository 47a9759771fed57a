"""The status ConfigMap: how the cluster and every group stand, as Cluster Autoscaler writes it.

Times of transition are kept from status to status. `data.featureGates` says which gates are on, so
that a scheduler which holds pods back for their drivers knows that somebody understands why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import yaml

from bayplan.autoscaler.cloudstate.backoff import BackoffStatus
from bayplan.autoscaler.clusterstate.registry import GroupState
from bayplan.kube.gates import FeatureGates
from bayplan.kube.times import timestamp
from bayplan.nodegroups import NodeGroup

LAST_UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"
Fields = dict[str, object]
_TIMES = frozenset({"time", "lastProbeTime"})
"""Fields that say only when a status was made."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupStatus:
    """One group, as it is told."""

    group: NodeGroup
    state: GroupState
    healthy: bool = True
    rest: BackoffStatus | None = None
    in_progress: bool = False
    candidates: int = 0
    being_deleted: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ClusterStatus:
    """Everything, as it is told."""

    healthy: bool = True
    needed: bool = False
    """Whether pods wait that nothing could be bought for."""
    message: str = ""
    groups: tuple[GroupStatus, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class StatusDocument:
    """A status, before it is a text: most are like the one before, and are never written."""

    fields: Fields
    gates: FeatureGates

    def data(self) -> dict[str, str]:
        """The ConfigMap's data."""
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in self.gates.as_dict().items())
        text = yaml.dump(self.fields, Dumper=_Dumper, sort_keys=False)
        return {"status": text, "featureGates": gates}


def same_but_for_time(one: StatusDocument, other: StatusDocument) -> bool:
    """Whether two statuses say the same, but for when."""
    return one.gates == other.gates and _timeless(one.fields) == _timeless(other.fields)


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {name: _timeless(one) for name, one in value.items() if name not in _TIMES}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


@dataclass(slots=True)
class StatusWriter:
    """Makes statuses, and remembers since when things are as they are."""

    gates: FeatureGates
    _since: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def tell(self, status: ClusterStatus, now: datetime) -> StatusDocument:
        """How everything stands at a moment."""
        moment = timestamp(now)
        names = {one.group.id for one in status.groups}
        self._since = {key: kept for key, kept in self._since.items() if key[1] in {"", *names}}
        groups = [self._group(one, moment) for one in status.groups]
        fields: Fields = {
            "time": now.strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC"),
            "autoscalerStatus": "Running",
            **({"message": status.message} if status.message else {}),
            "clusterWide": self._whole(status, moment),
            "nodeGroups": groups,
        }
        return StatusDocument(fields, self.gates)

    def _whole(self, status: ClusterStatus, moment: str) -> Fields:
        counts = _counted(status.groups)
        going_on = any(one.in_progress for one in status.groups)
        scale_up = "InProgress" if going_on else "Needed" if status.needed else "NoActivity"
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

    def _group(self, one: GroupStatus, moment: str) -> Fields:
        name, group = one.group.id, one.group
        health = "Healthy" if one.healthy else "Unhealthy"
        sizes = {
            "cloudProviderTarget": one.state.target,
            "minSize": group.min_size,
            "maxSize": group.max_size,
        }
        counted: Fields = {"status": health, "nodeCounts": _counted([one]), **sizes}
        found: Fields = {
            "name": name,
            "health": {**counted, **self._at(("h", name), health, moment)},
            "scaleUp": self._up(one, moment),
            "scaleDown": self._down(name, one.candidates, moment),
        }
        return {**found, "problems": list(one.problems)} if one.problems else found

    def _up(self, one: GroupStatus, moment: str) -> Fields:
        rest = one.rest
        status = "Backoff" if rest else "InProgress" if one.in_progress else "NoActivity"
        told: Fields = {"status": status}
        if rest is not None:
            told["backoffInfo"] = {"errorCode": rest.code, "errorMessage": rest.message}
        return {**told, **self._at(("u", one.group.id), status, moment)}

    def _down(self, name: str, candidates: int, moment: str) -> Fields:
        status = "CandidatesPresent" if candidates else "NoCandidates"
        told: Fields = {"status": status}
        if candidates:
            told["candidates"] = candidates
        return {**told, **self._at(("d", name), status, moment)}

    def _at(self, what: tuple[str, str], status: str, moment: str) -> Fields:
        known, since = self._since.get(what, ("", moment))
        if known != status:
            since = moment
            self._since[what] = (status, moment)
        return {"lastProbeTime": moment, "lastTransitionTime": since}


class _Dumper(yaml.CSafeDumper):
    """As people read it: nothing is told by reference."""

    def ignore_aliases(self, _: object) -> bool:
        return True


def _counted(groups: Sequence[GroupStatus]) -> Fields:
    """How many nodes are where."""
    states = [one.state for one in groups]
    being_deleted = sum(one.being_deleted for one in groups)
    late = sum(len(one.late) for one in states)
    registered: Fields = {
        "total": sum(one.registered for one in states),
        "ready": sum(one.ready for one in states),
        "notStarted": sum(len(one.starting) for one in states),
    }
    if being_deleted:
        registered["beingDeleted"] = being_deleted
    unready = sum(len(one.unready) for one in states) + late
    registered["unready"] = {"total": unready, "resourceUnready": late}
    return {
        "registered": registered,
        "longUnregistered": sum(len(one.long_unregistered) for one in states),
        "unregistered": sum(len(one.unregistered) for one in states),
    }
