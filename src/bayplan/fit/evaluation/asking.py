"""What a pod is asked by: its shape, its needs, its plugins and default spreading, as a question.

Pods that are asked the same are given the same standing answers (`evaluation.cache`). What makes
them the same is looked up at every decision, so it is kept by objects and small integers.
"""

from __future__ import annotations

from bayplan.fit.evaluation.cache import Standing
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugin_set import PluginSet
from bayplan.fit.plugins.base import Arrival, Filter, Question
from bayplan.fit.plugins.registry import compile_filters, refusal_before_nodes
from bayplan.fit.profile import Profile
from bayplan.fit.refusal import Refusal
from bayplan.fit.requirements.default_spread import DefaultSpread, default_spread
from bayplan.fit.requirements.pods import RequirementsCache
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.kube.pods import Pod


class AskedKind:
    """Pods of one shape, asked by one set of plugins, with default spreading as it now stands."""

    __slots__ = ("defaults", "generation")

    def __init__(self, generation: int, defaults: DefaultSpread) -> None:
        self.generation = generation
        self.defaults = defaults


class Asking:
    """Makes questions of pods, and keeps what stands of their answers."""

    def __init__(self, cluster: Cluster, needs: RequirementsCache, profile: Profile) -> None:
        self._cluster = cluster
        self._needs = needs
        self._profile = profile
        self._standing = Standing(cluster)
        self._kinds: dict[tuple[PodSignature, int], AskedKind] = {}
        self._plugin_numbers: dict[PluginSet, int] = {profile.plugins: 0}
        self._last_plugins = (profile.plugins, 0)

    def evaluation(self, pod: Pod, plugins: PluginSet | None = None) -> Evaluation | Refusal:
        """The standing answers for pods like this one, or why no node is even looked at."""
        if self._cluster.usage_changes.is_long or self._cluster.node_changes.is_long:
            self._cluster.tidy()
        plugins = plugins or self._profile.plugins_for(pod)
        shape = self._cluster.shapes.of(pod)
        needs = self._needs.of(pod)
        if not needs.ready or (shape.node_names is not None and not shape.node_names):
            refusal = refusal_before_nodes(self._arrival(pod, shape, plugins))
            if refusal is not None:
                return refusal
        kind = self._kind(shape, plugins)
        key = (kind, needs, pod.spec.node_name)

        def work_out() -> Evaluation:
            on = pod.spec.node_name
            return Evaluation(Question(self._cluster, shape, needs, on, kind.defaults, plugins))

        return self._standing.of(key, needs, work_out)

    def filters(self, pod: Pod) -> tuple[Filter, ...] | Refusal:
        """What evaluations of pods like this one ask, compiled and not kept."""
        plugins = self._profile.plugins_for(pod)
        shape = self._cluster.shapes.of(pod)
        refusal = refusal_before_nodes(self._arrival(pod, shape, plugins))
        if refusal is not None:
            return refusal
        needs, defaults = self._needs.of(pod), self._kind(shape, plugins).defaults
        asked = Question(self._cluster, shape, needs, pod.spec.node_name, defaults, plugins)
        return tuple(compile_filters(asked))

    def _arrival(self, pod: Pod, shape: PodSignature, plugins: PluginSet) -> Arrival:
        devices = self._needs.devices.of(pod)
        return Arrival(pod, shape, self._needs.claims(pod), plugins, devices)

    def _number(self, plugins: PluginSet) -> int:
        """A small integer for a plugin set, which is cheaper to look up than the set."""
        last, number = self._last_plugins
        if last is not plugins:
            number = self._plugin_numbers.setdefault(plugins, len(self._plugin_numbers))
            self._last_plugins = (plugins, number)
        return number

    def _kind(self, shape: PodSignature, plugins: PluginSet) -> AskedKind:
        """What pods of a shape are asked by; the same object until that changes."""
        number = self._number(plugins)
        generation = self._cluster.workloads.generations[shape.namespace]
        known = self._kinds.get((shape, number))
        if known is None or known.generation != generation:
            defaults = default_spread(shape, self._cluster, plugins)
            if known is not None and known.defaults == defaults:
                known.generation = generation
                return known
            if len(self._kinds) > self._cluster.limits.shapes:
                self._kinds.clear()
            known = self._kinds[shape, number] = AskedKind(generation, defaults)
        return known
