"""Pods grouped by likeness: whatever is worked out for one of a group holds for all of it.

Pods are alike if they have one signature, need the same of storage, insist on the same node, have
one priority and are nominated for the same node, if any. Claims that differ only by name are alike,
so the replicas of a StatefulSet are one group. A volume that several pods use, or that is in use
already, is told apart by its handle, since it takes one place on a node however many use it there.

Some pods hinge on each other by more than what a node has room for: two that share a claim that
only one pod may use, or that is not bound yet, and those whose claims existing volumes could serve.
A group of such pods says so, and is placed one by one; so is one whose scheduler has other filters
than the usual ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bayplan.fit.plugins.base import Question
from bayplan.fit.plugins.registry import has_all_filters
from bayplan.fit.refusal import Refusal
from bayplan.fit.requirements.claims import READ_WRITE_ONCE_POD
from bayplan.fit.requirements.devices import NO_DEVICES
from bayplan.fit.requirements.pods import PodRequirements
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.volumes.identity import VolumeIdentity, of_inline_volume
from bayplan.kube.meta import Labels
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolumeClaim


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Pods that are alike."""

    pods: tuple[Pod, ...]
    signature: PodSignature
    requirements: PodRequirements | None
    """What they need of storage; None if they are refused before any node is looked at."""
    refusal: Refusal | None = None
    own_volumes: tuple[tuple[VolumeIdentity, int], ...] = ()
    """By driver and plugin (of an example), how many volumes each pod has for itself."""
    shared_volumes: tuple[VolumeIdentity, ...] = ()
    """The volumes that each pod uses, and others as well."""
    hinges: bool = False
    """Whether placing one of the pods can decide about another, wherever that goes."""
    labels: Labels = field(default_factory=dict)
    """The labels of one of them; no selector that matters tells another apart."""

    def __len__(self) -> int:
        return len(self.pods)

    def of(self, pods: Sequence[Pod]) -> Group:
        """The same group with only these of its pods."""
        return replace(self, pods=tuple(pods))


Said = tuple[PodRequirements, bool] | Refusal
"""What is needed of storage and whether rules are others than usual; or why all is refused."""
Rest = tuple[str, int, str, str]
"""The node that is named, the priority, the node that is kept for the pod, and the scheduler."""
Likeness = tuple[PodSignature, Said, Rest]


class _Uses:
    """Which claims and volumes several of the pods use, or some that are placed."""

    def __init__(self, cluster: Cluster, pods: Iterable[Pod]) -> None:
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
        """A pod's claims by key, and its volumes, each once."""
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

    def shared(self, pod: Pod, needs: PodRequirements) -> tuple[VolumeIdentity, ...]:
        """The volumes of a pod that others use as well, waiting or placed."""
        in_use = {need.shared for need in needs.attach if need.shared}
        found = [
            one for one in self.of(pod)[1] if one.handle in self.handles or one.handle in in_use
        ]
        return tuple(sorted(found, key=lambda one: (one.driver, one.handle)))

    def hinges(self, pod: Pod) -> bool:
        """Whether a claim of a pod is shared in a way that decides about its other users."""
        return any(
            key in self.claims
            and (READ_WRITE_ONCE_POD in claim.spec.access_modes or not claim.spec.volume_name)
            for key, claim in self.of(pod)[0].items()
        )

    def shares_nothing(self, needs: PodRequirements) -> bool:
        """Whether pods that need this share no volume with anybody."""
        return not (self.claims or self.handles or any(need.shared for need in needs.attach))


def _repeated(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name, count in Counter(names).items() if count > 1)


def group_pods(snapshot: Snapshot, pods: Iterable[Pod]) -> list[Group]:
    """The groups of these pods, in the order in which their first ones came."""
    waiting = list(pods)
    drafts = _drafts(snapshot, waiting)
    if _heed(snapshot.cluster, drafts):
        drafts = _drafts(snapshot, waiting)
    uses = _Uses(snapshot.cluster, (pod for pod in waiting if pod.spec.volumes))
    return [group for key, draft in drafts.items() for group in _split(key, draft, uses)]


def _drafts(snapshot: Snapshot, pods: Sequence[Pod]) -> dict[Likeness, list[Pod]]:
    """Pods by everything but the volumes that they share."""
    drafts: dict[Likeness, list[Pod]] = {}
    known: dict[tuple[PodSignature, PodRequirements, Rest], list[Pod]] = {}
    for pod in pods:
        signature, rest = snapshot.cluster.signatures.of(pod), _rest(snapshot, pod)
        needs = snapshot.requirements_of(pod)
        alike = known.get((signature, needs, rest))
        if alike is None:
            said = _said(snapshot, pod)
            alike = drafts.setdefault((signature, said, rest), [])
            if not isinstance(said, Refusal):
                known[signature, needs, rest] = alike
        alike.append(pod)
    return drafts


def _rest(snapshot: Snapshot, pod: Pod) -> Rest:
    scheduler = pod.spec.scheduler_name if snapshot.profile.schedulers else ""
    priority, nominated = snapshot.priority(pod), snapshot.nominated_node(pod)
    return pod.spec.node_name, priority, nominated, scheduler


def _said(snapshot: Snapshot, pod: Pod) -> Said:
    answer = snapshot.evaluation(pod)
    if isinstance(answer, Refusal):
        return answer
    return answer.question.requirements, _is_unusual(answer.question)


def _is_unusual(question: Question) -> bool:
    """Whether a profile leaves filters out, or has constraints for those without their own."""
    plugins = question.plugins
    ignores = plugins.ignored_resources or plugins.ignored_resource_groups
    return bool(
        not has_all_filters(plugins)
        or ignores
        or question.default_spread.hard
        or plugins.volume_rules is not None
        or question.requirements.devices != NO_DEVICES
    )


def _heed(cluster: Cluster, drafts: dict[Likeness, list[Pod]]) -> bool:
    """Heed the terms that the pods will have once they run; says whether that told some apart."""
    for signature, *_ in drafts:
        if signature.terms.owned:
            cluster.counted_terms(signature)
    return any(cluster.signatures.of(pods[0]) is not key[0] for key, pods in drafts.items())


def _split(key: Likeness, pods: list[Pod], uses: _Uses) -> Iterator[Group]:
    """The groups of a draft: those that share the same volumes."""
    signature, said, _ = key
    if isinstance(said, Refusal):
        yield Group(tuple(pods), signature, None, refusal=said)
        return
    needs, unusual = said
    labels = pods[0].metadata.labels
    if not pods[0].spec.volumes:
        yield Group(tuple(pods), signature, needs, hinges=unusual, labels=labels)
        return
    one_by_one = unusual or any(claim.search for claim in needs.first_consumer)
    parts: dict[tuple[tuple[VolumeIdentity, ...], bool], list[Pod]] = {}
    if uses.shares_nothing(needs):
        parts[(), False] = pods
    else:
        for pod in pods:
            parts.setdefault((uses.shared(pod, needs), uses.hinges(pod)), []).append(pod)
    for (shared, hinges), part in parts.items():
        own = _own(uses.of(part[0])[1], shared)
        yield Group(tuple(part), signature, needs, None, own, shared, hinges or one_by_one, labels)


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
