"""The snapshot: a cluster as objects say it is, and what would fit into it.

    >>> from bayplan import Snapshot
    >>> snapshot = Snapshot.load("cluster.json")    # doctest: +SKIP
    >>> snapshot.decide(pod)                        # doctest: +SKIP

Fill it with `put` and `delete` as objects come and go, or with `Snapshot.load` from a dump.
`decide` says where a pod would go, `assume` takes it as placed, `explain` says why or why not.
Everything that is done between `fork` and `revert` is undone, at the cost of what was done; forks
nest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from bayplan.base.garbage import paused_collector
from bayplan.fit.copies import private_copy
from bayplan.fit.decision import Assumption, Decision
from bayplan.fit.evaluation.asking import Asking
from bayplan.fit.evaluation.nominated import NominatedPodsCheck
from bayplan.fit.evaluation.ranks import DOES_NOT_FIT, Evaluation, best_of
from bayplan.fit.evaluation.verdicts import Verdicts, refusing_plugins, verdicts
from bayplan.fit.limits import Limits
from bayplan.fit.plugin_set import PluginSet
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.registry import BY_NAME, pinned_by
from bayplan.fit.profile import Profile
from bayplan.fit.refusal import Refusal
from bayplan.fit.requirements.pods import PodRequirements, RequirementsCache
from bayplan.fit.signatures.signature import pinned_node
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import ALL_ROWS, Rows
from bayplan.fit.state.volume_report import VolumeReport, all_volumes
from bayplan.fit.state.workloads import Budgets
from bayplan.fit.store.journal import Journal
from bayplan.fit.store.objects import Kind, placed_pod
from bayplan.fit.store.store import Layers
from bayplan.kube.codec import ObjectError
from bayplan.kube.loading import Loaded, Progress, load
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod

if TYPE_CHECKING:
    from bayplan.fit.explanation.answer import Explanation

T = TypeVar("T", bound=KubeObject)


class Snapshot:
    """A cluster's objects, ready to be asked what fits."""

    def __init__(
        self,
        objects: Iterable[KubeObject] = (),
        *,
        profile: Profile | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.profile = profile or Profile()
        self.limits = limits or Limits()
        self.cluster = Cluster(self.profile, self.limits)
        self._journal = Journal()
        self._layers = Layers(self.cluster, self._journal)
        self._objects = self._layers.objects
        self._assumed = self._layers.assumed
        self._needs = RequirementsCache(self.cluster)
        self._asking = Asking(self.cluster, self._needs, self.profile)
        self.problems: tuple[ObjectError, ...] = ()
        """What was wrong with objects that `load` left out."""
        self.skipped: Mapping[str, int] = {}
        """How many objects `load` passed over, by kinds that do not matter here."""
        self.put_all(objects)

    @classmethod
    def load(
        cls,
        source: str | Path | bytes,
        *,
        profile: Profile | None = None,
        progress: Progress | None = None,
    ) -> Snapshot:
        """A snapshot of a dump: a file, a directory, `-` for standard input, or bytes.

        Objects that cannot be used are left out and told in `problems`; LoadError is raised only
        if the source cannot be read at all.
        """
        return cls.of(load(source, progress=progress), profile=profile)

    @classmethod
    def of(cls, loaded: Loaded, *, profile: Profile | None = None) -> Snapshot:
        """A snapshot of what was loaded, with what was wrong with it."""
        snapshot = cls(loaded.objects, profile=profile)
        snapshot.problems = tuple(loaded.problems)
        snapshot.skipped = loaded.skipped
        return snapshot

    # -- objects -------------------------------------------------------------------------------

    def put(self, obj: KubeObject) -> None:
        """Add an object, or replace the one of its kind and name; kinds of no concern are
        ignored.

        What is assumed of it stays, until the object itself says otherwise. In a fork it is taken
        by its word.
        """
        self._layers.put(obj)

    def put_all(self, objects: Iterable[KubeObject]) -> None:
        """Put many objects, in an order in which nothing has to be counted twice."""
        everything = sorted(objects, key=lambda obj: _LOADING_ORDER.get(type(obj).__name__, 0))
        nodes = sum(type(obj).__name__ == "Node" for obj in everything)
        self.cluster.slots.reserve(len(self.cluster.slots) + nodes)
        with paused_collector():
            for obj in everything:
                self._layers.put(obj)

    def delete(self, kind: Kind, key: str) -> None:
        """Remove an object by its kind and key (`namespace/name`, or the name alone), and what is
        assumed of it.
        """
        self._layers.delete(kind, key)

    def observe(self, obj: KubeObject, *, own: bool = False) -> None:
        """Put what an informer says, unless something newer is there; while a fork is open it is
        kept for after it.

        An object that is the snapshot's own, since it came from the wire and nobody changes it any
        more, is not copied.
        """
        self._layers.observe(obj, own=own)

    def observe_gone(self, kind: Kind, key: str) -> None:
        """Delete what an informer says is gone, likewise."""
        self._layers.observe_gone(kind, key)

    def get(self, kind: type[T], key: str) -> T | None:
        """An object by its kind and key; a pod is shown on the node it is assumed to be on."""
        found = self._objects.find(kind, key) if self._objects.knows(kind) else None
        if not isinstance(found, kind):
            return None
        return found if kind is Pod else private_copy(found)

    def counted_pod(self, key: str) -> Pod | None:
        """A pod as it counts: on the node that it is assumed to be on, or nominated for the node
        that is kept for it, whatever has been observed of it.
        """
        return self._objects.counted_pod(key)

    def objects(self) -> Iterator[KubeObject]:
        """All objects, as they would have to be put to get this snapshot again."""
        return (one if isinstance(one, Pod) else private_copy(one) for one in self._objects)

    def shared_objects(self) -> Iterator[KubeObject]:
        """The same as the snapshot itself has them, for whoever changes nothing."""
        return iter(self._objects)

    def pods_on(self, node: str) -> list[Pod]:
        """The pods on a node, assumed ones too."""
        return [placed_pod(record) for record in self.cluster.pods.by_node.get(node, {}).values()]

    @property
    def budgets(self) -> Budgets:
        """All disruption budgets; to be read, not written."""
        return self._objects.budgets

    def priority(self, pod: Pod) -> int:
        """A pod's priority: its own, or that of its class, or the default class's."""
        if pod.spec.priority is not None:
            return pod.spec.priority
        return self.class_priority(pod.spec.priority_class_name)

    def class_priority(self, name: str) -> int:
        """The value of a priority class; without a name, the default class's."""
        classes = self._objects.priority_classes
        named = classes.get(name)
        if named is None and not name:
            return min((one.value for one in classes.values() if one.global_default), default=0)
        return named.value if named else 0

    # -- nominations ---------------------------------------------------------------------------

    def nominate(self, pod: Pod, node: str) -> None:
        """Keep a node for a pod that waits for others to leave it; it is put if it is not there.

        That holds until its status says something of a nomination, or it is placed or deleted.
        """
        self._layers.nominate(pod, node)

    def clear_nomination(self, pod: Pod) -> None:
        """Keep no node for a pod any more, whatever its status still says."""
        self._layers.clear_nomination(pod.key)

    def nominated_node(self, pod: Pod) -> str:
        """The node that a pod is nominated for, or empty."""
        return self.cluster.nominations.node_of(pod)

    def nominated_for(self, node: str) -> list[Pod]:
        """The pods that are nominated for a node."""
        records = self.cluster.nominations.by_node.get(node, {}).values()
        return [record.pod for record in records]

    # -- forks ---------------------------------------------------------------------------------

    @contextmanager
    def fork(self) -> Iterator[Snapshot]:
        """Try something: all that is done inside is undone at the end, unless `commit` is
        called. Forks that were begun inside and left open are undone with it.
        """
        depth = self.begin()
        try:
            yield self
        finally:
            while self._journal.depth >= depth:
                self.revert()

    @property
    def is_forked(self) -> bool:
        """Whether something is being tried."""
        return self._journal.depth > 0

    def begin(self) -> int:
        """Start a fork by hand; returns how deep forks now nest."""
        return self._journal.begin()

    def commit(self) -> None:
        """Keep what was done since the last fork began; an outer fork can still undo it."""
        self._journal.commit()
        self._catch_up()

    def revert(self) -> None:
        """Undo what was done since the last fork began."""
        self._journal.revert()
        self._catch_up()

    def _catch_up(self) -> None:
        if not self._journal.depth:
            self._layers.catch_up()

    # -- moving pods in a fork -----------------------------------------------------------------

    def uncount_pods(self, node: str) -> None:
        """Count no pod of a node any more, until the fork ends; they stay known, and `move` counts
        them where they go.
        """
        self._layers.uncount_pods(node)

    def move(self, key: str, node: str) -> None:
        """Count a known pod on another node than it is on, until the fork ends; what its claims
        would get there is not asked.
        """
        self._layers.move(key, node)

    # -- decisions -----------------------------------------------------------------------------

    def decide(
        self,
        pod: Pod,
        *,
        among: Collection[str] | None = None,
        plugins: PluginSet | None = None,
    ) -> Decision:
        """The best node for a pod, of all or of some, if one fits; nothing is changed.

        Another set of plugins than the profile's may be asked.
        """
        if among is None and pod.spec.affinity is not None:
            decision = self._decide_pinned(pod, plugins)
            if decision is not None:
                return decision
        rows = ALL_ROWS if among is None else self.cluster.slots.of(among)
        return self._decided(pod, self.evaluation(pod, plugins), rows)

    def _decided(self, pod: Pod, evaluation: Evaluation | Refusal, rows: Rows) -> Decision:
        if isinstance(evaluation, Refusal):
            refused = frozenset((evaluation.plugin,))
            return Decision(None, refused_before=evaluation, plugins=refused)
        slot = self._best(pod, evaluation, rows)
        if slot == DOES_NOT_FIT:
            return Decision(None, plugins=self._refusing(pod, evaluation, rows))
        node = self.cluster.slots.names[slot]
        if not evaluation.question.needs.first_consumer:
            return Decision(node)
        return self.decision_on(pod, node)

    def _decide_pinned(self, pod: Pod, plugins: PluginSet | None) -> Decision | None:
        """The decision for a pod that is meant for one node, by what stands for all its like;
        None if it is not such a pod, or more is to be looked at.
        """
        like = self.cluster.shapes.unpinned(pod)
        if like is pod or self.cluster.nominations.by_node:
            return None
        evaluation = self.evaluation(like, plugins)
        pinning = "" if isinstance(evaluation, Refusal) else pinned_by(evaluation.question)
        if isinstance(evaluation, Refusal) or not pinning:
            return None
        rows = self.cluster.slots.of([pinned_node(pod)])
        if evaluation.best(rows) == DOES_NOT_FIT:
            others = len(self.cluster.slots) > len(rows)
            refused = refusing_plugins(evaluation, rows) | ({pinning} if others else set())
            return Decision(None, plugins=refused)
        return self.decision_on(pod, pinned_node(pod))

    def decision_on(self, pod: Pod, node: str) -> Decision:
        """The decision for a given node, whether or not the pod fits there."""
        return Decision(node, self._needs.bindings(pod, node) if pod.spec.volumes else ())

    def _best(self, pod: Pod, evaluation: Evaluation, rows: Rows) -> int:
        """The slot of the node that a pod is nominated for, if it fits there, or of the best."""
        nominations = self.cluster.nominations
        said = pod.status.nominated_node_name or nominations.told
        if not said and not nominations.by_node:
            return evaluation.best(rows)
        nominated = self.cluster.slots.by_name.get(self.nominated_node(pod))
        if nominated is None and not nominations.by_node:
            return evaluation.best(rows)
        contest = self.contest(pod, evaluation.question.plugins)
        if (
            nominated is not None
            and (isinstance(rows, slice) or nominated in rows)
            and contest.refusal(nominated) is None
        ):
            return nominated
        evaluation.refresh()
        ranks = evaluation.ranks_without(contest.taken(evaluation.ranks >= 0))
        return best_of(ranks, rows)

    def _refusing(self, pod: Pod, evaluation: Evaluation, rows: Rows) -> frozenset[str]:
        """The plugins that refuse nodes, by themselves or beside pods nominated for them."""
        plugins = refusing_plugins(evaluation, rows)
        if self.cluster.nominations.by_node:
            every = np.arange(self.cluster.slots.capacity)[rows].tolist()
            contest = self.contest(pod, evaluation.question.plugins)
            beside = contest.refusals_beside(set(every))
            plugins |= BY_NAME.keys() & {refusal.plugin for refusal in beside.values()}
        return plugins

    def contest(self, pod: Pod, plugins: PluginSet | None = None) -> NominatedPodsCheck:
        """A pod's question beside pods that are nominated for nodes."""
        evaluate = self.evaluation if plugins is None else partial(self.evaluation, plugins=plugins)
        return NominatedPodsCheck(pod, self.cluster, evaluate, self.priority)

    def assume(self, pod: Pod, decision: Decision) -> Assumption:
        """Take a decision as carried out: the pod on its node, and its claims as decided.

        ValueError if it names no node, if the pod is on one already, or if a claim or volume that
        it rests on has gone to another. A pod that has ended takes nothing.
        """
        return self._assumed.assume(pod, decision, self._objects.shape(pod))

    def forget(self, assumption: Assumption) -> None:
        """Take back what an assumption still holds, and nothing else; again does no harm."""
        self._assumed.forget(assumption)

    def finish_binding(self, assumption: Assumption, deadline: float) -> None:
        """The decision has been carried out and should be observed before `deadline`."""
        self._assumed.set_deadline(assumption, deadline)

    def expire(self, now: float) -> list[Assumption]:
        """Forget what should have been observed by now, and was not; returns it."""
        return self._assumed.expire(now)

    def overdue(self, now: float) -> list[Assumption]:
        """What should have been observed by now, and was not."""
        return self._assumed.overdue(now)

    def assumptions(self) -> list[Assumption]:
        """What is assumed and has not been observed, nor forgotten."""
        return list(self._assumed.assumptions())

    def place(self, pod: Pod) -> Decision:
        """Decide, and assume the decision."""
        if pod.spec.affinity is not None and pinned_node(pod):
            decision = self.decide(pod)
            if decision.node is not None:
                self.assume(pod, decision)
            return decision
        evaluation = self.evaluation(pod)
        decision = self._decided(pod, evaluation, ALL_ROWS)
        if decision.node is not None and isinstance(evaluation, Evaluation):
            self._assumed.assume(pod, decision, evaluation.question.shape)
        return decision

    def explain(self, pod: Pod, *, with_fixes: bool = True) -> Explanation:
        """Why a pod goes where it goes, or goes nowhere and what would help; nothing is
        changed.
        """
        from bayplan.fit.explanation.explain import explain  # noqa: PLC0415 - it stands on this module

        return explain(self, pod, with_fixes=with_fixes)

    def needs_of(self, pod: Pod) -> PodRequirements:
        """What a pod needs of storage; pods that need the same are given the same object."""
        return self._needs.of(pod)

    def volumes(self) -> list[VolumeReport]:
        """By node and driver: the volumes in use, by whom, the limit, and who set it."""
        return all_volumes(self.cluster)

    def refusal(self, pod: Pod, node: str) -> Refusal | None:
        """The first refusal of a pod on one node; None if it fits there, ValueError if there is no
        such node.
        """
        slot = self.cluster.slots.by_name.get(node)
        if slot is None:
            raise ValueError(f"there is no node {node!r}")
        return self.contest(pod).refusal(slot)

    def verdicts(self, pod: Pod, *, plugins: PluginSet | None = None) -> Verdicts | Refusal:
        """What every filter and score says of every node, or why none is looked at."""
        evaluation = self.evaluation(pod, plugins)
        if isinstance(evaluation, Refusal):
            return evaluation
        contest = self.contest(pod, plugins)
        return verdicts(evaluation, contest.refusals_beside(contest.rivals.by_slot))

    def evaluation(self, pod: Pod, plugins: PluginSet | None = None) -> Evaluation | Refusal:
        """The standing answers for pods like this one, or why no node is even looked at."""
        return self._asking.evaluation(pod, plugins)

    def filters(self, pod: Pod) -> tuple[Filter, ...] | Refusal:
        """What evaluations of pods like this one ask, compiled and not kept: for whoever asks a few
        nodes at a time, and needs no standing answer.
        """
        return self._asking.filters(pod)

    def claims_to_allocate(self, pod: Pod) -> tuple[str, ...]:
        """The ResourceClaims that would have to be allocated before a pod can go anywhere."""
        return self._needs.devices.to_allocate(pod)


_LOADING_ORDER = {"Node": 1, "VolumeAttachment": 2, "Pod": 3}
