"""The search for the nearest fixes: take steps in a fork until the pod fits, keep the cheapest.

Nodes are taken in the order of what they lack, whichever plugins refuse, and each is repaired: the
refusal suggests steps, each step is taken in a fork, and what then still refuses suggests more.
Beside that, one more node of each kind is tried. Whatever comes out is proven on the whole as it
is; steps that a fix can do without are dropped, and fixes that ask for more than another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from bayplan.fit.decision import Refusal
from bayplan.fit.explanation.new_nodes import propose_new_nodes
from bayplan.fit.explanation.proof import order_of, prove_fix, undominated
from bayplan.fit.explanation.refusing_nodes import RefusingNode, refusals_on, refusing_nodes
from bayplan.fit.explanation.result import FixSearchResult, NearestNode
from bayplan.fit.explanation.trial import SnapshotTrial, details_of, steps_before_nodes, steps_for
from bayplan.fit.fixes import Fix, FixKind, Step, Steps, cost_of
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod

MOST_STEPS = 3
MOST_NODES = 24
"""Nodes that are repaired in up to so many steps."""
MOST_NODES_FOR_ONE_STEP = 256
"""Further nodes that are repaired in one step, if no fix of one step was found."""
MOST_FIXES = 6
MAX_OF_A_KIND = 2
"""Fixes of the same kinds of steps that are worth reading."""
MOST_PROVEN = 24
_REPEATABLE = {
    FixKind.CLEAR_TAINT,
    FixKind.RAISE_LIMIT,
    FixKind.DROP_AFFINITY,
    FixKind.RELAX_SPREAD,
}
"""Steps after which others may be needed before the refusal changes."""


def nearest_fixes(snapshot: Snapshot, pod: Pod) -> FixSearchResult:
    """Find the smallest changes after which a pod fits, the best first; each has been tried."""
    search = Search(snapshot, pod)
    search.run(pod, (), len(pod.spec.volumes) + 1)
    return search.outcome()


class Search:
    """One search; fixes are kept under a cost bound that falls as cheaper ones are found."""

    def __init__(self, snapshot: Snapshot, pod: Pod) -> None:
        self._snapshot = snapshot
        self._pod = pod
        self._found: list[Steps] = []
        self._costs: dict[tuple[FixKind, ...], list[float]] = defaultdict(list)
        self._nodes = self._tried = self._kinds = 0
        self._nearest: str | None = None

    def run(self, pod: Pod, taken: Steps, before: int) -> None:
        """Search further after steps that are taken; `before` more steps may be for refusals before
        any node.
        """
        if isinstance(self._snapshot.evaluation(pod), Refusal):
            self._before_nodes(pod, taken, before)
            return
        for step in self._propose_new_nodes(pod):
            self._keep((*taken, step))
        refusing = refusing_nodes(self._snapshot, pod)
        self._nodes = max(self._nodes, len(self._snapshot.cluster.slots))
        if refusing and self._nearest is None:
            self._nearest = refusing[0].node
        self._repair_all(pod, taken, refusing)

    def outcome(self) -> FixSearchResult:
        """Return the proven fixes, and how far the search went."""
        fixes = tuple(self._proven())
        return FixSearchResult(
            fixes,
            self._nodes,
            self._tried,
            self._kinds,
            MOST_STEPS,
            None if fixes else self._nearest_node(),
        )

    def _propose_new_nodes(self, pod: Pod) -> Iterator[Step]:
        tried = propose_new_nodes(self._snapshot, pod)
        self._kinds = max(self._kinds, tried.kinds)
        yield from tried.steps

    def _repair_all(self, pod: Pod, taken: Steps, refusing: list[RefusingNode]) -> None:
        """Repair the nearest nodes that represent a group; and where none of them is one step away,
        those that may be.
        """
        nearest = [one for one in refusing if not one.is_duplicate][:MOST_NODES]
        for one in nearest:
            if cost_of(taken) + one.cost > self._bound():
                break
            self._tried += 1
            self._repair(pod, one.node, taken, MOST_STEPS)
        tried = {one.node for one in nearest}
        alone = [one for one in refusing if len(one.plugins) == 1 and one.node not in tried]
        for one in alone[:MOST_NODES_FOR_ONE_STEP]:
            if any(len(steps) == len(taken) + 1 for steps in self._found):
                break
            self._tried += 1
            self._repair(pod, one.node, taken, 1)

    def _before_nodes(self, pod: Pod, taken: Steps, before: int) -> None:
        """Take steps for refusals before any node, and then for the rest."""
        for step in steps_before_nodes(self._snapshot, pod) if before else ():
            with self._snapshot.fork():
                step.apply(self._snapshot)
                if self._snapshot.decide(step.pod).node is not None:
                    self._keep((*taken, step))
                else:
                    self.run(step.pod, (*taken, step), before - 1)

    def _repair(self, pod: Pod, node: str, taken: Steps, depth: int) -> None:
        """Find steps that make a pod fit on one node."""
        refusal = self._snapshot.refusal(pod, node)
        if refusal is None:
            self._keep(taken)
            return
        for step in steps_for(SnapshotTrial(self._snapshot, pod, node, refusal)) if depth else ():
            steps = (*taken, step)
            if cost_of(steps) > self._bound():
                continue
            with self._snapshot.fork():
                step.apply(self._snapshot)
                if self._helps(step, node, refusal):
                    self._repair(step.pod, node, steps, depth - 1)

    def _helps(self, step: Step, node: str, before: Refusal) -> bool:
        return step.kind in _REPEATABLE or self._snapshot.refusal(step.pod, node) != before

    def _keep(self, steps: Steps) -> None:
        kinds = tuple(step.kind for step in steps)
        self._found.append(steps)
        self._costs[kinds] = sorted([*self._costs[kinds], cost_of(steps)])[:MAX_OF_A_KIND]

    def _bound(self) -> float:
        """Return the cost above which fixes are not searched."""
        costs = sorted(cost for few in self._costs.values() for cost in few)
        return costs[MOST_FIXES] if len(costs) > MOST_FIXES else float("inf")

    def _proven(self) -> list[Fix]:
        """Return the fixes that hold, few of each kind, the cheapest first."""
        fixes: list[Fix] = []
        for steps in sorted(self._found, key=order_of)[: MOST_PROVEN * 4]:
            if _is_offered(steps, fixes):
                continue
            fix = prove_fix(self._snapshot, self._pod, steps)
            if fix is not None:
                fixes = _few_of_a_kind(undominated([*fixes, fix]))
            if len(fixes) == MOST_FIXES:
                break
        return fixes

    def _nearest_node(self) -> NearestNode | None:
        node = self._nearest
        if node is None or node not in self._snapshot.cluster.slots.by_name:
            return None
        refusals = refusals_on(self._snapshot, self._pod, node)
        trials = (SnapshotTrial(self._snapshot, self._pod, node, one) for one in refusals)
        return NearestNode(
            node, refusals, tuple(detail for trial in trials for detail in details_of(trial))
        )


def _is_offered(steps: Steps, fixes: list[Fix]) -> bool:
    """Whether some of these steps alone have been offered already."""
    texts = {step.text for step in steps}
    return any(texts >= {step.text for step in fix.steps} for fix in fixes)


def _few_of_a_kind(fixes: list[Fix]) -> list[Fix]:
    counts: Counter[tuple[FixKind, ...]] = Counter()
    kept: list[Fix] = []
    for fix in fixes:
        counts[fix.kinds] += 1
        if counts[fix.kinds] <= MAX_OF_A_KIND:
            kept.append(fix)
    return kept
