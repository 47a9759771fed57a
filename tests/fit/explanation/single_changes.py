"""Every single change that makes a pod fit, by brute force: each kind of change, made to everything
in the cluster that it could be made to.

Nothing here looks at why a pod is refused: changes are made one by one, and the pod is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from bayplan.fit import Refusal, Snapshot
from bayplan.fit.batches import NodeTemplate
from bayplan.fit.plugins.node_affinity import is_managed_label
from bayplan.fit.plugins.node_resources_fit.explanation import with_requests_at_most
from bayplan.fit.requirements.claims import READ_WRITE_ONCE_POD
from bayplan.fit.state.pods import placed_on
from bayplan.kube.daemonsets import belongs_to_node
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Affinity, Pod, Toleration
from bayplan.kube.requests import pod_requests
from bayplan.kube.storage import CSINode, VolumeAttachment, VolumeNodeResources
from bayplan.kube.tolerations import find_untolerated, is_status_taint

MOST_SKEW = 4


def single_changes(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """The changes that help, each as `kind: what`."""
    if isinstance(snapshot.verdicts(pod), Refusal):
        return
    found = chain(_of_nodes(snapshot, pod), _of_the_pod(snapshot, pod), _of_pods(snapshot, pod))
    yield from chain(found, _new_nodes(snapshot, pod))


def _fits_with(snapshot: Snapshot, pod: Pod, *puts: KubeObject) -> bool:
    with snapshot.fork():
        for obj in puts:
            snapshot.put(obj)
        return snapshot.decide(pod).node is not None


def _nodes(snapshot: Snapshot) -> list[Node]:
    return sorted((o for o in snapshot.objects() if isinstance(o, Node)), key=lambda n: n.name)


def _of_nodes(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    for node in _nodes(snapshot):
        for kind, changed in _changed_nodes(snapshot, node, pod):
            if _fits_with(snapshot, pod, changed):
                yield f"{kind}: {node.name}"
        yield from _detached(snapshot, node, pod)


def _changed_nodes(snapshot: Snapshot, node: Node, pod: Pod) -> Iterator[tuple[str, KubeObject]]:
    taints = node.spec.taints
    if node.spec.unschedulable or any(t.key.endswith("/unschedulable") for t in taints):
        left = [t for t in taints if not t.key.endswith("/unschedulable")]
        spec = replace(node.spec, unschedulable=False, taints=left)
        yield "uncordon", replace(node, spec=spec)
    if any(is_status_taint(taint) for taint in taints):
        left = [taint for taint in taints if not is_status_taint(taint)]
        yield "clear-taint", replace(node, spec=replace(node.spec, taints=left))
    wanted = {k: v for k, v in pod.spec.node_selector.items() if not is_managed_label(k)}
    labels = {**node.metadata.labels, **wanted}
    yield "label-node", replace(node, metadata=replace(node.metadata, labels=labels))
    for expressed in _expressed(pod):
        said = {**labels, **expressed}
        yield "label-node", replace(node, metadata=replace(node.metadata, labels=said))
    for key in _topologies(pod) - node.metadata.labels.keys():
        others = {n.metadata.labels.get(key) for n in _nodes(snapshot)} - {None}
        for value in sorted(filter(None, others)):
            said = {**node.metadata.labels, key: value}
            yield "label-topology", replace(node, metadata=replace(node.metadata, labels=said))
    csinode = snapshot.get(CSINode, node.name)
    for at, driver in enumerate(csinode.spec.drivers if csinode else ()):
        if csinode is not None and driver.allocatable and driver.allocatable.count is not None:
            more = VolumeNodeResources(count=driver.allocatable.count + len(pod.spec.volumes))
            drivers = list(csinode.spec.drivers)
            drivers[at] = replace(driver, allocatable=more)
            yield "raise-limit", replace(csinode, spec=replace(csinode.spec, drivers=drivers))


def _expressed(pod: Pod) -> Iterator[dict[str, str]]:
    """For each term of required affinity the labels that it asks for, if they may be set."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    for term in affinity.required.node_selector_terms if affinity and affinity.required else ():
        asked = {
            e.key: e.values[0] if e.operator == "In" else "true"
            for e in term.match_expressions
            if e.operator in ("In", "Exists") and not is_managed_label(e.key)
        }
        if asked and not term.match_fields:
            yield asked


def _topologies(pod: Pod) -> set[str]:
    spread = {one.topology_key for one in pod.spec.topology_spread_constraints}
    affinity = pod.spec.affinity
    near = affinity.pod_affinity.required if affinity and affinity.pod_affinity else []
    return spread | {term.topology_key for term in near}


def _detached(snapshot: Snapshot, node: Node, pod: Pod) -> Iterator[str]:
    for obj in list(snapshot.objects()):
        if isinstance(obj, VolumeAttachment) and obj.spec.node_name == node.name:
            with snapshot.fork():
                snapshot.delete(VolumeAttachment, obj.name)
                fits = snapshot.decide(pod).node is not None
            if fits:
                yield f"detach-volume: {obj.name}"


def _of_the_pod(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    for kind, changed in chain(
        _tolerating(snapshot, pod),
        _selecting(snapshot, pod),
        _asking_less(snapshot, pod),
        _relaxed(pod),
        _without_affinity(pod),
    ):
        if _fits_with(snapshot, changed):
            yield f"{kind}: the pod"


def _tolerating(snapshot: Snapshot, pod: Pod) -> Iterator[tuple[str, Pod]]:
    for node in _nodes(snapshot):
        held = pod.spec.tolerations
        taints = [t for t in node.spec.taints if find_untolerated((t,), held) is not None]
        if taints and not any(map(is_status_taint, taints)):
            more = [Toleration(key=t.key, operator="Exists", effect=t.effect) for t in taints]
            yield "toleration", replace(pod, spec=replace(pod.spec, tolerations=[*held, *more]))


def _selecting(snapshot: Snapshot, pod: Pod) -> Iterator[tuple[str, Pod]]:
    for node in _nodes(snapshot):
        labels = node.metadata.labels
        kept = {k: v for k, v in pod.spec.node_selector.items() if labels.get(k) == v}
        if kept != pod.spec.node_selector:
            yield "change-selector", replace(pod, spec=replace(pod.spec, node_selector=kept))
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        free = replace(affinity, node_affinity=None)
        yield "change-selector", replace(pod, spec=replace(pod.spec, affinity=free))


def _asking_less(snapshot: Snapshot, pod: Pod) -> Iterator[tuple[str, Pod]]:
    resources = snapshot.cluster.resources
    asked = {name: amount for name, amount in pod_requests(pod).items() if amount}
    for slot in snapshot.cluster.slots.by_name.values():
        free = {
            name: int(resources.free[slot][resources.columns[name]])
            for name in asked
            if name in resources.columns
        }
        short = {name: free[name] for name in free if free[name] < asked[name]}
        if short and all(amount > 0 for amount in short.values()):
            smaller = with_requests_at_most(pod, short)
            if smaller is not None:
                yield "smaller-request", smaller
    ports = [replace(c, ports=[]) for c in pod.spec.containers]
    yield "drop-host-port", replace(pod, spec=replace(pod.spec, containers=ports))


def _relaxed(pod: Pod) -> Iterator[tuple[str, Pod]]:
    constraints = pod.spec.topology_spread_constraints
    for at, one in enumerate(constraints):
        softer = [replace(one, max_skew=one.max_skew + more) for more in range(1, MOST_SKEW + 1)]
        softer.append(replace(one, when_unsatisfiable="ScheduleAnyway"))
        softer.append(replace(one, node_taints_policy="Honor"))
        softer.append(replace(one, node_affinity_policy="Honor"))
        softer.append(replace(one, min_domains=None))
        for changed in softer:
            every = [*constraints[:at], changed, *constraints[at + 1 :]]
            spec = replace(pod.spec, topology_spread_constraints=every)
            yield "relax-spread", replace(pod, spec=spec)


def _without_affinity(pod: Pod) -> Iterator[tuple[str, Pod]]:
    affinity = pod.spec.affinity or Affinity()
    for name in ("pod_affinity", "pod_anti_affinity"):
        rules = getattr(affinity, name)
        for at in range(len(rules.required) if rules else 0):
            left = [*rules.required[:at], *rules.required[at + 1 :]]
            changed = replace(affinity, **{name: replace(rules, required=left)})
            yield "drop-affinity", replace(pod, spec=replace(pod.spec, affinity=changed))


def _of_pods(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    """Pods that can go elsewhere, and those without whom the pod fits that are in the way by more
    than what they request.
    """
    for node in _nodes(snapshot):
        for one in snapshot.pods_on(node.name):
            if belongs_to_node(one) or one.is_terminating:
                continue
            if _can_move(snapshot, pod, one):
                yield f"move-pod: {one.key}"
            if _is_in_the_way(snapshot, pod, one):
                yield f"stop-pod: {one.key}"


def _can_move(snapshot: Snapshot, pod: Pod, other: Pod) -> bool:
    unplaced = placed_on(other, "")
    with snapshot.fork():
        snapshot.put(unplaced)
        node = snapshot.decide(pod).node
        if node is None:
            return False
        snapshot.assume(pod, snapshot.decision_on(pod, node))
        return snapshot.decide(unplaced).node not in (None, other.spec.node_name)


def _is_in_the_way(snapshot: Snapshot, pod: Pod, other: Pod) -> bool:
    """Whether it has a claim for itself that the pod wants, or a rule keeps the two apart."""
    exclusive = any(
        claim is not None and READ_WRITE_ONCE_POD in claim.spec.access_modes
        for _, claim in (snapshot.cluster.storage.claim_of(pod, v) for v in pod.spec.volumes)
    )
    verdicts = snapshot.verdicts(pod)
    assert not isinstance(verdicts, Refusal)
    plugins = {one.plugin for one in verdicts.refusals.values()}
    if not (exclusive and "VolumeRestrictions" in plugins) and "InterPodAffinity" not in plugins:
        return False
    with snapshot.fork():
        snapshot.delete(Pod, other.key)
        node = snapshot.decide(pod).node
    return node is not None and verdicts.refusals[node].plugin in (
        "InterPodAffinity",
        "VolumeRestrictions",
    )


def _new_nodes(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    for node in _nodes(snapshot):
        new = tuple(NodeTemplate.from_node(snapshot, node.name).objects(f"{node.name}-new"))
        if _fits_with(snapshot, pod, *new):
            yield f"add-node: {node.name}"
