"""The snapshot: a cluster as its objects describe it, and what would fit into it.

    >>> from bayplan import Snapshot
    >>> snapshot = Snapshot.load("cluster.json")    # doctest: +SKIP
    >>> snapshot.decide(pod)                        # doctest: +SKIP

Fill it with `put` and `delete` as objects come and go, or with `Snapshot.load` from a dump.
`decide` finds the node of a pod, `assume` counts it there, and `explain` of
`bayplan.fit.explanation` explains why or why not.
Everything that is done between `fork` and `revert` is undone, at the cost of what was done; forks
nest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path

from bayplan.fit.decision import Decision, Refusal
from bayplan.fit.evaluation.cache import EvaluationCache
from bayplan.fit.evaluation.nominated import NominatedPodsCheck
from bayplan.fit.evaluation.ranks import DOES_NOT_FIT, Evaluation
from bayplan.fit.evaluation.verdicts import Verdicts, refusing_plugins, verdicts
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.registry import PLUGIN_READS, pinning_plugin
from bayplan.fit.profile import CacheLimits, PluginSet, Profile
from bayplan.fit.requirements.pods import PodRequirements, RequirementsCache
from bayplan.fit.signatures.signature import pinned_node
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import ALL_ROWS, Rows
from bayplan.fit.state.volume_report import VolumeReport, all_volumes
from bayplan.fit.store.store import ObjectStore
from bayplan.kube.codec import ObjectError
from bayplan.kube.manifests import LoadResult, Progress, load
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod


class Snapshot(ObjectStore):
    """A cluster's objects, and where pods would fit."""

    def __init__(
        self,
        objects: Iterable[KubeObject] = (),
        *,
        profile: Profile | None = None,
        limits: CacheLimits | None = None,
    ) -> None:
        self.profile = profile or Profile()
        self.limits = limits or CacheLimits()
        rules, known = self.profile.rules, self.profile.knows_devices
        super().__init__(ClusterState(rules, self.limits, PLUGIN_READS, knows_devices=known))
        self._requirements = RequirementsCache(self.cluster)
        self._evaluations = EvaluationCache(self.cluster, self._requirements, self.profile)
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
    def of(cls, loaded: LoadResult, *, profile: Profile | None = None) -> Snapshot:
        """A snapshot of what was loaded, with what was wrong with it."""
        snapshot = cls(loaded.objects, profile=profile)
        snapshot.problems = tuple(loaded.problems)
        snapshot.skipped = loaded.skipped
        return snapshot

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
        if not evaluation.request.requirements.first_consumer:
            return Decision(node)
        return self.decision_on(pod, node)

    def _decide_pinned(self, pod: Pod, plugins: PluginSet | None) -> Decision | None:
        """The decision for a pod that is meant for one node, by what stands for all its like;
        None if it is not such a pod, or more is to be looked at.
        """
        unpinned = self.cluster.signatures.unpinned(pod)
        if unpinned is pod or self.cluster.nominations.by_node:
            return None
        evaluation = self.evaluation(unpinned, plugins)
        pinning = "" if isinstance(evaluation, Refusal) else pinning_plugin(evaluation.request)
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
        return Decision(node, self._requirements.bindings(pod, node) if pod.spec.volumes else ())

    def _best(self, pod: Pod, evaluation: Evaluation, rows: Rows) -> int:
        """The slot of the node that a pod is nominated for, if it fits there, or of the best."""
        nominations = self.cluster.nominations
        if not (nominations.by_node or nominations.by_scheduler or pod.status.nominated_node_name):
            return evaluation.best(rows)
        nominated = self.cluster.slots.by_name.get(self.nominated_node(pod))
        if nominated is None and not nominations.by_node:
            return evaluation.best(rows)
        check = self.nominated_pods_check(pod, evaluation.request.plugins)
        return check.best(evaluation, nominated, rows)

    def _refusing(self, pod: Pod, evaluation: Evaluation, rows: Rows) -> frozenset[str]:
        """The plugins that refuse nodes, by themselves or beside pods nominated for them."""
        plugins = refusing_plugins(evaluation, rows)
        if not self.cluster.nominations.by_node:
            return plugins
        check = self.nominated_pods_check(pod, evaluation.request.plugins)
        return plugins | check.refusing_plugins(rows)

    def nominated_pods_check(
        self, pod: Pod, plugins: PluginSet | None = None
    ) -> NominatedPodsCheck:
        """A pod's question beside pods that are nominated for nodes."""
        evaluate = self.evaluation if plugins is None else partial(self.evaluation, plugins=plugins)
        return NominatedPodsCheck(pod, self.cluster, evaluate, self.priority)

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
            self._assume(pod, decision, evaluation.request.signature)
        return decision

    def requirements_of(self, pod: Pod) -> PodRequirements:
        """Return a pod's requirements; pods with equal ones share one object."""
        return self._requirements.of(pod)

    def volumes(self) -> list[VolumeReport]:
        """Return by node and driver: attachments in use, their users, the limit and its source."""
        return all_volumes(self.cluster)

    def refusal(self, pod: Pod, node: str) -> Refusal | None:
        """The first refusal of a pod on one node; None if it fits there, ValueError if there is no
        such node.
        """
        slot = self.cluster.slots.by_name.get(node)
        if slot is None:
            raise ValueError(f"there is no node {node!r}")
        return self.nominated_pods_check(pod).refusal(slot)

    def verdicts(self, pod: Pod, *, plugins: PluginSet | None = None) -> Verdicts | Refusal:
        """Return the verdicts of all filters and scores, or the refusal before any node is
        evaluated.
        """
        evaluation = self.evaluation(pod, plugins)
        if isinstance(evaluation, Refusal):
            return evaluation
        check = self.nominated_pods_check(pod, plugins)
        return verdicts(evaluation, check.refusals_with_nominated(check.nominated.by_slot))

    def evaluation(self, pod: Pod, plugins: PluginSet | None = None) -> Evaluation | Refusal:
        """Return the evaluation of equivalent pods, or the refusal before any node."""
        return self._evaluations.evaluation(pod, plugins)

    def filters(self, pod: Pod) -> tuple[Filter, ...] | Refusal:
        """The filters of pods like this one, compiled and not kept: for a caller that asks a few
        nodes at a time.
        """
        return self._evaluations.filters(pod)

    def claims_to_allocate(self, pod: Pod) -> tuple[str, ...]:
        """The ResourceClaims that would have to be allocated before a pod can go anywhere."""
        return self._requirements.devices.to_allocate(pod)
