"""Pods grouped by equivalence: whatever is computed for one of a group holds for all of it.

Pods are equivalent if they have one signature, the same storage requirements, the same required
node, one priority and the same nominated node, if any. Claims that differ only by name are
equivalent, so the replicas of a StatefulSet are one group. A volume that several pods use, or that
is in use already, is distinguished by its handle, since it takes one attach slot on a node however
many pods use it there.

Some pods depend on each other by more than a node's free capacity: two that share a claim that only
one pod may use, or that is not bound yet, and those whose claims existing volumes could serve. A
group of such pods is marked as interdependent and placed one by one; so is one whose scheduler has
other filters than the usual ones, and one that compares nodes, where the node of one pod can decide
about the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bayplan.fit.decision import Refusal
from bayplan.fit.plugins.registry import has_other_rules
from bayplan.fit.requirements.claims import READ_WRITE_ONCE_POD
from bayplan.fit.requirements.pods import PodRequirements
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import TermKind
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.volumes.identity import VolumeIdentity, of_inline_volume
from bayplan.kube.meta import Labels
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolumeClaim


@dataclass(frozen=True, slots=True, eq=False)
class PodEquivalenceGroup:
    """Equivalent pods, and what they have in common."""

    pods: tuple[Pod, ...]
    signature: PodSignature
    requirements: PodRequirements | None
    """Their storage requirements; None if they are refused before any node is evaluated."""
    refusal: Refusal | None = None
    own_volumes: tuple[tuple[VolumeIdentity, int], ...] = ()
    """By driver and plugin (of an example), how many volumes each pod has for itself."""
    shared_volumes: tuple[VolumeIdentity, ...] = ()
    """The volumes that each pod uses, and others as well."""
    is_interdependent: bool = False
    """Whether placing one of the pods can decide about another, on whatever node."""
    labels: Labels = field(default_factory=dict)
    """The labels of one of them; no selector that counts distinguishes another."""

    def __len__(self) -> int:
        return len(self.pods)

    def of(self, pods: Sequence[Pod]) -> PodEquivalenceGroup:
        """Return the group with only these of its pods."""
        return replace(self, pods=tuple(pods))


Judgement = tuple[PodRequirements, bool] | Refusal
"""Storage requirements and whether other rules apply; or the refusal before any node."""
PodContext = tuple[str, int, str, str]
"""The required node, the priority, the nominated node, and the scheduler."""
EquivalenceKey = tuple[PodSignature, Judgement, PodContext]


class _Uses:
    """The claims and volumes that several of the pods use, or placed pods."""

    def __init__(self, cluster: ClusterState, pods: Iterable[Pod]) -> None:
        self._cluster = cluster
        claims: list[str] = []
        handles: list[str] = []
        for pod in pods:
            own, volumes = self.of(pod)
            claims.extend(own)
            handles.extend([one.handle for one in volumes])
        self.claims = _repeated(claims)
        self.handles = _repeated(handles)

    def of(self, pod: Pod) -> tuple[dict[str, PersistentVolumeClaim], list[VolumeIdentity]]:
        """Return a pod's claims by key, and its volumes, each once."""
        storage = self._cluster.storage
        claims: dict[str, PersistentVolumeClaim] = {}
        volumes: list[VolumeIdentity] = []
        for volume in pod.spec.volumes:
            key, claim = storage.claim_of(pod, volume)
            if claim is not None:
                claims[key] = claim
                one = storage.identity(claim)
            else:
                one = None if key else of_inline_volume(volume)
            if one is not None and one not in volumes:
                volumes.append(one)
        return claims, volumes

    def shared(self, pod: Pod, requirements: PodRequirements) -> tuple[VolumeIdentity, ...]:
        """Return the volumes of a pod that other pods use as well, pending or placed."""
        in_use = {need.shared for need in requirements.attach if need.shared}
        found = [
            one for one in self.of(pod)[1] if one.handle in self.handles or one.handle in in_use
        ]
        return tuple(sorted(found, key=lambda one: (one.driver, one.handle)))

    def is_interdependent(self, pod: Pod) -> bool:
        """Whether a claim of a pod is shared so that placing it decides about its other users."""
        return any(
            key in self.claims
            and (READ_WRITE_ONCE_POD in claim.spec.access_modes or not claim.spec.volume_name)
            for key, claim in self.of(pod)[0].items()
        )

    def shares_nothing(self, requirements: PodRequirements) -> bool:
        """Whether pods of these requirements share no volume with other pods."""
        return not (self.claims or self.handles or any(need.shared for need in requirements.attach))


def _repeated(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name, count in Counter(names).items() if count > 1)


def group_pods(snapshot: Snapshot, pods: Iterable[Pod]) -> list[PodEquivalenceGroup]:
    """Return the groups of these pods, in the order of their first pods."""
    pending = list(pods)
    by_key = _by_equivalence(snapshot, pending)
    if _count_own_terms(snapshot.cluster, by_key):
        by_key = _by_equivalence(snapshot, pending)
    uses = _Uses(snapshot.cluster, (pod for pod in pending if pod.spec.volumes))
    return [
        group for key, equivalents in by_key.items() for group in _split(key, equivalents, uses)
    ]


def _by_equivalence(snapshot: Snapshot, pods: Sequence[Pod]) -> dict[EquivalenceKey, list[Pod]]:
    """Return pods by everything but the volumes that they share."""
    by_key: dict[EquivalenceKey, list[Pod]] = {}
    known: dict[tuple[PodSignature, PodRequirements, PodContext], list[Pod]] = {}
    for pod in pods:
        signature, rest = snapshot.cluster.signatures.of(pod), _context(snapshot, pod)
        requirements = snapshot.requirements_of(pod)
        equivalent = known.get((signature, requirements, rest))
        if equivalent is None:
            judgement = _judge(snapshot, pod)
            equivalent = by_key.setdefault((signature, judgement, rest), [])
            if not isinstance(judgement, Refusal):
                known[signature, requirements, rest] = equivalent
        equivalent.append(pod)
    return by_key


def _context(snapshot: Snapshot, pod: Pod) -> PodContext:
    scheduler = pod.spec.scheduler_name if snapshot.profile.schedulers else ""
    priority, nominated = snapshot.priority(pod), snapshot.nominated_node(pod)
    return pod.spec.node_name, priority, nominated, scheduler


def _judge(snapshot: Snapshot, pod: Pod) -> Judgement:
    answer = snapshot.evaluation(pod)
    if isinstance(answer, Refusal):
        return answer
    return answer.request.requirements, has_other_rules(answer.request)


def _count_own_terms(cluster: ClusterState, by_key: dict[EquivalenceKey, list[Pod]]) -> bool:
    """Count the terms that the pods will have once they run; return whether that divided a
    group.
    """
    for signature, *_ in by_key:
        if signature.terms.owned:
            cluster.counted_terms(signature)
    return any(cluster.signatures.of(pods[0]) is not key[0] for key, pods in by_key.items())


def _split(key: EquivalenceKey, pods: list[Pod], uses: _Uses) -> Iterator[PodEquivalenceGroup]:
    """Divide equivalent pods into groups that share the same volumes."""
    signature, judgement, _ = key
    if isinstance(judgement, Refusal):
        yield PodEquivalenceGroup(tuple(pods), signature, None, refusal=judgement)
        return
    requirements, is_judged_otherwise = judgement
    labels = pods[0].metadata.labels
    if not pods[0].spec.volumes:
        yield PodEquivalenceGroup(
            tuple(pods),
            signature,
            requirements,
            is_interdependent=is_judged_otherwise,
            labels=labels,
        )
        return
    one_by_one = is_judged_otherwise or any(claim.search for claim in requirements.first_consumer)
    parts: dict[tuple[tuple[VolumeIdentity, ...], bool], list[Pod]] = {}
    if uses.shares_nothing(requirements):
        parts[(), False] = pods
    else:
        for pod in pods:
            parts.setdefault(
                (uses.shared(pod, requirements), uses.is_interdependent(pod)), []
            ).append(pod)
    for (shared, is_interdependent), part in parts.items():
        own = _own(uses.of(part[0])[1], shared)
        yield PodEquivalenceGroup(
            tuple(part),
            signature,
            requirements,
            None,
            own,
            shared,
            is_interdependent or one_by_one,
            labels,
        )


def _own(
    volumes: Iterable[VolumeIdentity], shared: Sequence[VolumeIdentity]
) -> tuple[tuple[VolumeIdentity, int], ...]:
    examples: dict[tuple[str, object], VolumeIdentity] = {}
    counts: Counter[tuple[str, object]] = Counter()
    for one in volumes:
        if one not in shared:
            kind = (one.driver, one.plugin)
            examples.setdefault(kind, one)
            counts[kind] += 1
    return tuple((examples[kind], count) for kind, count in counts.items())


# -- groups that compare nodes ---------------------------------------------------------------------


def compares_nodes(group: PodEquivalenceGroup, own_labels: frozenset[str]) -> bool:
    """Whether more than one node's capacity decides about a group on new nodes."""
    signature = group.signature
    return (
        group.is_interdependent
        or bool(signature.hard_spread or signature.terms.affinity)
        or any(placed.topology_key not in own_labels for placed in signature.terms.anti_affinity)
    )


def is_divided_by_daemons(
    group: PodEquivalenceGroup, daemons: Iterable[Pod], snapshot: Snapshot
) -> bool:
    """Whether daemons exclude some pods of a group and others not: the group was made without
    them, and its pods may differ by labels that only they read.
    """
    known, signatures = snapshot.cluster.namespaces, snapshot.cluster.signatures
    terms = [
        owned.term
        for daemon in daemons
        for owned in signatures.of(daemon).terms.owned
        if owned.kind is TermKind.KEEPS_OUT
    ]
    if not terms:
        return False
    namespace, labels = group.signature.namespace, [pod.metadata.labels for pod in group.pods]
    kept_out = ({term.concerns(namespace, one, known) for one in labels} for term in terms)
    return any(len(answers) > 1 for answers in kept_out)


def depends_on(group: PodEquivalenceGroup, other: PodEquivalenceGroup, snapshot: Snapshot) -> bool:
    """Whether a group has affinity to another one, or is spread by where it is."""
    known, namespace, labels = snapshot.cluster.namespaces, other.signature.namespace, other.labels
    return any(
        placed.term.picks(namespace, labels, known) for placed in group.signature.terms.affinity
    ) or any(
        constraint.selector.matches(labels) and group.signature.namespace == namespace
        for constraint in group.signature.hard_spread
    )
