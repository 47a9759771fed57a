"""The search for the nearest fixes: take steps in a fork until the pod fits, keep the cheapest.

For each way in which nodes refuse the pod, the nodes that are nearest to taking it are repaired:
the refusal suggests steps, each step is taken in a fork, and what then still refuses suggests more.
Beside that, one more node of each kind is tried. Whatever comes out is applied once more to the
whole as it is, and only what then really places the pod is offered.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from bayplan.fit.explanation.actions import acted
from bayplan.fit.explanation.fix import Fix, FixKind, Step, Steps, cost_of
from bayplan.fit.explanation.growth import one_more_node
from bayplan.fit.explanation.steps import steps_before_nodes, steps_for
from bayplan.fit.explanation.trial import Trial, filter_of
from bayplan.fit.filters.node_resources_fit import NodeResourcesFit
from bayplan.fit.refusal import Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod

MOST_STEPS = 3
MOST_NODES_A_REASON = 4
MOST_NODES = 24
MOST_FIXES = 6
MOST_ALIKE = 2
"""Fixes of the same kinds of steps that are worth reading."""
_REPEATABLE = {FixKind.RAISE_LIMIT, FixKind.DROP_AFFINITY, FixKind.RELAX_SPREAD}
"""Steps of which several may be needed before the refusal changes."""


def nearest_fixes(snapshot: Snapshot, pod: Pod) -> tuple[Fix, ...]:
    """The smallest changes after which a pod fits, the best first; each has been tried."""
    found = sorted(_search(snapshot, pod, len(pod.spec.volumes) + 1), key=_order)
    fixes: list[Fix] = []
    alike: Counter[tuple[FixKind, ...]] = Counter()
    told: list[frozenset[str]] = []
    for steps in found:
        kinds, texts = tuple(step.kind for step in steps), frozenset(step.text for step in steps)
        if len(fixes) == MOST_FIXES or alike[kinds] == MOST_ALIKE or _adds_nothing(texts, told):
            continue
        fix = verified(snapshot, pod, steps)
        if fix is not None:
            told.append(texts)
            alike[kinds] += 1
            fixes.append(fix)
    return tuple(fixes)


def _adds_nothing(texts: frozenset[str], told: list[frozenset[str]]) -> bool:
    """Whether some of these steps alone have been offered already."""
    return any(fewer <= texts for fewer in told)


def verified(snapshot: Snapshot, pod: Pod, steps: Steps) -> Fix | None:
    """The fix that steps are, if taking them really places the pod."""
    taken: list[Step] = []
    with snapshot.fork():
        for step in steps:
            taken.append(acted(snapshot, taken[-1].pod if taken else pod, step))
            step.apply(snapshot)
        node = snapshot.decide(steps[-1].pod).node
    return Fix(tuple(taken), node) if node is not None else None


def _search(snapshot: Snapshot, pod: Pod, before: int) -> list[Steps]:
    """Ways to make a pod fit; `before` more steps may be taken for what refuses it everywhere."""
    verdicts = snapshot.verdicts(pod)
    if isinstance(verdicts, Refusal):
        return _before_nodes(snapshot, pod, before)
    found: list[Steps] = [(step,) for step in one_more_node(snapshot, pod)]
    for node in _nearest_nodes(snapshot, pod, verdicts.refusals):
        found += _repairs(snapshot, pod, node, MOST_STEPS)
    return found


def _before_nodes(snapshot: Snapshot, pod: Pod, before: int) -> list[Steps]:
    """Steps for what refuses the pod everywhere, and then for what is left."""
    found: list[Steps] = []
    for step in steps_before_nodes(snapshot, pod) if before else ():
        with snapshot.fork():
            step.apply(snapshot)
            if snapshot.decide(step.pod).node is not None:
                found.append((step,))
            else:
                found += [(step, *rest) for rest in _search(snapshot, step.pod, before - 1)]
    return found


def _repairs(snapshot: Snapshot, pod: Pod, node: str, depth: int) -> list[Steps]:
    """The ways to make a pod fit on one node, of few steps each."""
    refusal = snapshot.refusal(pod, node)
    if refusal is None:
        return [()]
    if depth == 0:
        return []
    found: list[Steps] = []
    for step in steps_for(Trial(snapshot, pod, node, refusal)):
        with snapshot.fork():
            step.apply(snapshot)
            if _helps(snapshot, step, node, refusal):
                rest = _repairs(snapshot, step.pod, node, depth - 1)
                found += [(step, *more) for more in rest]
    return found


def _helps(snapshot: Snapshot, step: Step, node: str, before: Refusal) -> bool:
    return step.kind in _REPEATABLE or snapshot.refusal(step.pod, node) != before


def _nearest_nodes(snapshot: Snapshot, pod: Pod, refusals: dict[str, Refusal]) -> Iterable[str]:
    """A few nodes for each way of refusing, those that lack the least first."""
    by_reason: dict[Refusal, list[str]] = defaultdict(list)
    for node, refusal in refusals.items():
        by_reason[refusal].append(node)
    nearest: list[str] = []
    for nodes in by_reason.values():
        nodes.sort(key=lambda node: (_lack(snapshot, pod, node), node))
        nearest += nodes[:MOST_NODES_A_REASON]
    return nearest[:MOST_NODES]


def _lack(snapshot: Snapshot, pod: Pod, node: str) -> float:
    """The largest share of a request that a node cannot give; its number of taints otherwise."""
    slot = snapshot.cluster.slots.by_name[node]
    resources = filter_of(snapshot, pod, NodeResourcesFit)
    short = resources.shortages(slot) if resources else {}
    share = max(((wanted - free) / wanted for wanted, free in short.values()), default=0.0)
    return share + len(snapshot.cluster.node_at(slot).spec.taints)


def _order(steps: Steps) -> tuple[float, tuple[str, ...]]:
    return cost_of(steps), tuple(step.text for step in steps)
