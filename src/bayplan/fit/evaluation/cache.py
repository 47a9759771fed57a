"""Evaluations by request: signature, requirements, plugins and default spreading.

Equal requests share one evaluation. The key is looked up at every decision, so it is made of
objects and small integers. The least recently used evaluations are dropped first. One for a volume
that is in use already, or for a disk, is hardly used by more than one pod: of these only a few are
kept, so that thousands of them do not displace all others.
"""

from __future__ import annotations

from collections import OrderedDict

from bayplan.fit.decision import Refusal
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.base import EvaluationRequest, Filter, PreFilterInput
from bayplan.fit.plugins.registry import compile_filters, refusal_before_nodes
from bayplan.fit.profile import PluginSet, Profile
from bayplan.fit.requirements.default_spread import DefaultSpread, default_spread
from bayplan.fit.requirements.pods import RequirementsCache
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.kube.pods import Pod

BYTES_PER_SLOT = 32
"""What one evaluation takes for each node, about."""
MAX_SINGLE = 64
"""Evaluations of single pods that are kept."""


class SpreadVersion:
    """Default spreading for pods of one signature and one plugin set, as it is now."""

    __slots__ = ("defaults", "generation")

    def __init__(self, generation: int, defaults: DefaultSpread) -> None:
        self.generation = generation
        self.defaults = defaults


class EvaluationCache:
    """The evaluations of requests, compiled on demand and kept."""

    def __init__(
        self, cluster: ClusterState, requirements: RequirementsCache, profile: Profile
    ) -> None:
        self._cluster = cluster
        self._requirements = requirements
        self._profile = profile
        self._common: OrderedDict[object, Evaluation] = OrderedDict()
        self._single: OrderedDict[object, Evaluation] = OrderedDict()
        self._spreads: dict[tuple[PodSignature, int], SpreadVersion] = {}
        self._plugin_numbers: dict[PluginSet, int] = {profile.plugins: 0}
        self._last_plugins = (profile.plugins, 0)

    def evaluation(self, pod: Pod, plugins: PluginSet | None = None) -> Evaluation | Refusal:
        """Return the evaluation of equivalent pods, or the refusal before any node."""
        if self._cluster.usage_changes.is_long or self._cluster.node_changes.is_long:
            self._cluster.trim()
        plugins = plugins or self._profile.plugins_for(pod)
        signature = self._cluster.signatures.of(pod)
        requirements = self._requirements.of(pod)
        if not requirements.ready or (
            signature.node_names is not None and not signature.node_names
        ):
            refusal = refusal_before_nodes(self._arrival(pod, signature, plugins))
            if refusal is not None:
                return refusal
        spread = self._spread(signature, plugins)
        key = (spread, requirements, pod.spec.node_name)
        kept = self._single if requirements.is_unique else self._common
        known = kept.get(key)
        if known is not None:
            kept.move_to_end(key)
            return known
        self._evict()
        on, defaults = pod.spec.node_name, spread.defaults
        request = EvaluationRequest(self._cluster, signature, requirements, on, defaults, plugins)
        known = kept[key] = Evaluation(request)
        return known

    def filters(self, pod: Pod) -> tuple[Filter, ...] | Refusal:
        """Compile the filters of a pod's evaluation without keeping them."""
        plugins = self._profile.plugins_for(pod)
        signature = self._cluster.signatures.of(pod)
        refusal = refusal_before_nodes(self._arrival(pod, signature, plugins))
        if refusal is not None:
            return refusal
        requirements, defaults = (
            self._requirements.of(pod),
            self._spread(signature, plugins).defaults,
        )
        on = pod.spec.node_name
        return tuple(
            compile_filters(
                EvaluationRequest(self._cluster, signature, requirements, on, defaults, plugins)
            )
        )

    def _arrival(self, pod: Pod, signature: PodSignature, plugins: PluginSet) -> PreFilterInput:
        devices = self._requirements.devices.of(pod)
        return PreFilterInput(pod, signature, self._requirements.claims(pod), plugins, devices)

    def _evict(self) -> None:
        if self._cluster.pod_counts.is_crowded:
            self._common.clear()
            self._single.clear()
            self._cluster.pod_counts.forget_counters()
        each = self._cluster.slots.capacity * BYTES_PER_SLOT
        while len(self._common) * each > self._cluster.limits.evaluation_bytes:
            self._common.popitem(last=False)
        while len(self._single) >= MAX_SINGLE:
            self._single.popitem(last=False)

    def _number(self, plugins: PluginSet) -> int:
        """Return a small integer for a plugin set, which is cheaper to look up than the set."""
        last, number = self._last_plugins
        if last is not plugins:
            number = self._plugin_numbers.setdefault(plugins, len(self._plugin_numbers))
            self._last_plugins = (plugins, number)
        return number

    def _spread(self, signature: PodSignature, plugins: PluginSet) -> SpreadVersion:
        """Default spreading of a signature's pods; the same object until that changes."""
        number = self._number(plugins)
        generation = self._cluster.workloads.generations[signature.namespace]
        known = self._spreads.get((signature, number))
        if known is None or known.generation != generation:
            defaults = default_spread(signature, self._cluster, plugins)
            if known is not None and known.defaults == defaults:
                known.generation = generation
                return known
            if len(self._spreads) > self._cluster.limits.signatures:
                self._spreads.clear()
            known = self._spreads[signature, number] = SpreadVersion(generation, defaults)
        return known
