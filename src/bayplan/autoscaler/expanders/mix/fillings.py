"""Binpacking of pods by size alone: the problem in numbers, a lower bound, and fillings of nodes.

The problem has, for each group of equivalent pods and each template, the share of a new node that
one pod uses, by resource and by driver, and how many pods of that group alone fit one node. All
constraints that can only raise the cost are left out: anti-affinity, shared volumes, rules that
compare nodes, and that a pod cannot be split. So helping the same pods costs at least as much as
the optimum of this problem. Pods that depend on others, or on unusual filters, use nothing here.

A lower bound without a solver: by duality, any prices of a node's resources prove one. Each
template spreads the price of its node over the node's resources. A pod then costs, on a template,
its use of each resource times that price, and at least its cost on the cheapest template. The sum
over all pods is a lower bound for any spread, since pods on a node never cost more than the node.
The spread is improved step by step, towards the resources with the highest demand. The resulting
values of pods measure how well a node is used: a filling worth nearly the node's price cannot be
improved.

A filling is the number of pods of each group on one node of a template. In every step each template
suggests one for the remaining pods, and the best is used as often as there are pods for it. All
suggested fillings are kept for the solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bayplan.fit.batches.attempt import EstimateInput
from bayplan.fit.batches.groups import compares_nodes
from bayplan.fit.batches.packing import Blend
from bayplan.fit.plugins.capacity import UNLIMITED
from bayplan.fit.state.columns import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class PackingProblem:
    """S groups of equivalent pods, T templates, and R resources of a node."""

    parts: FloatArray
    """[S, T, R] the share of a node that one pod uses."""
    pods_per_node: IntArray
    """[S, T] how many pods fit one node; 0 if none."""
    costs: FloatArray
    """[T] the price of a node."""
    most: IntArray
    """[T] the maximum number of nodes."""
    wanted: IntArray
    """[S] the number of pods."""
    total: int
    """The maximum number of nodes of all templates together."""

    @property
    def takeable(self) -> BoolArray:
        """[S] whether a group fits any template."""
        return np.asarray((self.pods_per_node > 0).any(axis=1))

    def with_pods(self, wanted: Sequence[int] | IntArray) -> PackingProblem:
        """Return the problem for other numbers of pods."""
        return replace(self, wanted=np.array(wanted, dtype=np.int64))


def packing_problem(
    estimate_inputs: Sequence[EstimateInput], costs: Sequence[float], total: int
) -> PackingProblem:
    """Build the problem of these templates, all for the same pods."""
    pods = [len(group) for group in estimate_inputs[0].groups]
    wide = max(len(one.loads.fresh) for one in estimate_inputs)
    parts = np.zeros((len(pods), len(estimate_inputs), wide))
    pods_per_node = np.zeros((len(pods), len(estimate_inputs)), dtype=np.int64)
    for at, estimate_input in enumerate(estimate_inputs):
        fresh = np.maximum(estimate_input.loads.fresh, 1)
        for number, group in enumerate(estimate_input.groups):
            if group.is_interdependent:
                pods_per_node[number, at] = UNLIMITED
            elif takes(estimate_input, number):
                pods_per_node[number, at] = estimate_input.loads.pods_per_node(number)
                parts[number, at, : len(fresh)] = estimate_input.loads[number].need / fresh
    most = np.array([one.most for one in estimate_inputs], dtype=np.int64)
    return PackingProblem(
        parts,
        pods_per_node,
        np.array(costs),
        most,
        np.array(pods, dtype=np.int64),
        min(total, UNLIMITED),
    )


def takes(estimate_input: EstimateInput, number: int) -> bool:
    """Whether pods of a group could fit new nodes of a template, also after others."""
    group = estimate_input.groups[number]
    if not group.pods or group.refusal:
        return False
    return number in estimate_input.loads.fitting or compares_nodes(
        group, estimate_input.template.own_labels
    )


STEPS = 300
PACE = 2.0


def improve_bound(problem: PackingProblem, steps: int = STEPS) -> tuple[float, FloatArray]:
    """Return the best bound found, and the value of one pod of each group in it."""
    groups, templates, resources = problem.parts.shape
    takes, wanted = problem.pods_per_node > 0, np.where(problem.takeable, problem.wanted, 0)
    spread = np.full((templates, resources), 1 / max(resources, 1))
    best, worths, every = -1.0, np.zeros(groups), np.arange(groups)
    for step in range(1, steps + 1):
        priced = np.einsum("str,tr->st", problem.parts, spread) * problem.costs
        where = np.where(takes, priced, np.inf).argmin(axis=1)
        worth = priced[every, where]
        bound = float(worth @ wanted)
        if bound > best:
            best, worths = bound, worth
        demand = np.zeros((templates, resources))
        np.add.at(demand, where, problem.parts[every, where] * wanted[:, None])
        pull = demand / np.maximum(demand.max(axis=1, keepdims=True), 1e-300)
        spread = spread * np.exp(PACE / np.sqrt(step) * pull)
        spread /= spread.sum(axis=1, keepdims=True)
    return max(best, single_group_bound(problem)), worths


def single_group_bound(problem: PackingProblem) -> float:
    """Return the bound by one group alone, for the most expensive group."""
    takes = problem.pods_per_node > 0
    each = problem.wanted[:, None] * problem.costs / np.maximum(problem.pods_per_node, 1)
    least = np.where(takes, each, np.inf).min(axis=1, initial=np.inf)
    return float(least[problem.takeable].max(initial=0.0))


REVALUE_STEPS = 60
"""The number of steps when pods are valued again."""


@dataclass(frozen=True, slots=True, eq=False)
class FilledNodes:
    """Nodes of one template with the same filling."""

    template: int
    counts: IntArray
    nodes: int


@dataclass(slots=True, eq=False)
class NodePacking:
    """The filled nodes, the remaining pods, and the nodes that may still be added."""

    supply: IntArray
    """By group, the remaining pods."""
    most: IntArray
    """By template, the nodes that may still be added."""
    total: int
    lots: list[FilledNodes] = field(default_factory=list)

    @classmethod
    def empty(cls, problem: PackingProblem) -> NodePacking:
        """Return a packing without nodes."""
        return cls(problem.wanted.copy(), problem.most.copy(), problem.total)

    def max_nodes(self, template: int) -> int:
        """How many nodes of a template may still be added."""
        return min(int(self.most[template]), self.total)

    def add(self, template: int, counts: IntArray, nodes: int) -> bool:
        """Add up to `nodes` nodes with a filling, as far as pods remain; return whether any was
        added.
        """
        chosen = counts > 0
        if not chosen.any():
            return False
        there = int((self.supply[chosen] // counts[chosen]).min())
        nodes = min(nodes, there, self.max_nodes(template))
        if nodes <= 0:
            return False
        self.lots.append(FilledNodes(template, counts, nodes))
        self.supply -= counts * nodes
        self.most[template] -= nodes
        self.total -= nodes
        return True


@dataclass(slots=True, eq=False)
class _Template:
    """Suggests fillings of one template."""

    blend: Blend
    fresh: IntArray
    takes: BoolArray

    def suggest(self, supply: IntArray) -> IntArray:
        """Suggest a filling with the remaining pods."""
        self.blend.left = np.where(self.takes, supply, 0)
        return self.blend.suggest(self.fresh)


@dataclass(slots=True, eq=False)
class TemplateFillings:
    """All templates, and the fillings that they have suggested."""

    problem: PackingProblem
    templates: list[_Template]
    seen: dict[tuple[int, bytes], IntArray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, estimate_inputs: Sequence[EstimateInput], problem: PackingProblem, plain: Iterable[int]
    ) -> TemplateFillings:
        """Build it for the groups that are packed by size alone."""
        numbers = range(len(problem.wanted))
        wanted = np.isin(numbers, list(plain))
        made = []
        for at, estimate_input in enumerate(estimate_inputs):
            fresh = estimate_input.loads.fresh
            blend = Blend([estimate_input.loads[n] for n in numbers], [0] * len(numbers), fresh)
            made.append(_Template(blend, fresh, wanted & (problem.pods_per_node[:, at] > 0)))
        return cls(problem, made)

    def fill(self, packing: NodePacking, worth: FloatArray, revalue_every: int = 0) -> NodePacking:
        """Add nodes for the remaining pods by their values, revalued every so many steps."""
        step = 0
        while packing.supply.any() and packing.total > 0:
            step += 1
            if revalue_every and step % revalue_every == 0:
                worth = improve_bound(self.problem.with_pods(packing.supply), REVALUE_STEPS)[1]
            best = self._best(packing, worth)
            if best is None or not packing.add(*best, packing.total):
                break
        return packing

    def _best(self, packing: NodePacking, worth: FloatArray) -> tuple[int, IntArray] | None:
        """Return the template and filling with the highest value for its price."""
        found: list[tuple[float, int, IntArray]] = []
        for at, template in enumerate(self.templates):
            counts = template.suggest(packing.supply) if packing.max_nodes(at) > 0 else None
            if counts is not None and counts.any():
                self.seen.setdefault((at, counts.tobytes()), counts)
                found.append((float(worth @ counts) / float(self.problem.costs[at]), at, counts))
        _, at, counts = max(found, key=lambda one: one[:2], default=(0.0, -1, self.problem.wanted))
        return None if at < 0 else (at, counts)
