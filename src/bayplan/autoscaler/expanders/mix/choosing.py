"""What `cheapest-mix` answers: a mix or one group alone, with the bound beside it.

Prices are those of the cloud. Where it names none at all, a node costs one, and the fewest nodes
are the cheapest. Groups without a price among others with one are left out as long as those help,
and that is told; so are groups that are only ever empty or full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bayplan.autoscaler.candidates import Candidate, Choice, Purchase, Question
from bayplan.autoscaler.expanders.mix.buying import UNLIMITED, Buying
from bayplan.autoscaler.expanders.mix.figures import figures_of
from bayplan.autoscaler.expanders.mix.solving import bound_of, has_highs
from bayplan.autoscaler.plan import Mixed, Note
from bayplan.fit.batches import Group, fill_all
from bayplan.fit.batches.estimate import look

TINY = 1e-9
"""What a node costs at the least, so that there is something to compare."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One way to buy."""

    purchases: tuple[Purchase, ...]
    pods: int
    """How many pods have a place then, on any node."""
    cost: float
    left: tuple[Group, ...]
    """All groups without those that nodes which are there take."""
    helped: tuple[int, ...]
    """How many of them new nodes take."""


def cheapest_mix(
    candidates: Sequence[Candidate], question: Question, notes: tuple[Note, ...] = ()
) -> Choice:
    """What to buy of these candidates together."""
    usable, told = _usable(candidates)
    priced = all(one.view.price is not None for one in usable)
    costs = [max(one.view.price or 0.0, TINY) if priced else 1.0 for one in usable]
    exact = has_highs()
    answers = [_alone(one, cost) for one, cost in zip(usable, costs, strict=True)]
    if not any(one.view.options.zero_or_max_node_scaling for one in usable):
        answers.append(_mix(usable, costs, question, exact=exact))
    best = max(answers, key=lambda one: (one.pods, -one.cost, -len(one.purchases)))
    bound = _bound(best, usable, costs, question, exact=exact)
    mixed = Mixed(best.cost, min(bound, best.cost), priced=priced)
    return Choice(best.purchases, (*notes, *told), mixed)


def _usable(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Note]]:
    """Those that can be mixed, and what is told of the others."""
    parts = [one for one in candidates if not one.view.options.zero_or_max_node_scaling]
    found = parts or list(candidates)
    priced = [one for one in found if one.view.price is not None]
    if not priced:
        return found, []
    left_out = [one.view.id for one in found if one.view.price is None]
    return priced, [_unpriced(name) for name in left_out]


def _unpriced(group: str) -> Note:
    said = f"cheapest-mix: nobody can say what a node of node group {group} costs"
    return Note("NodePriceUnknown", f"{said}. Others are preferred.")


def _alone(candidate: Candidate, cost: float) -> Answer:
    found = candidate.option.estimate
    return Answer(
        (candidate.purchase(),),
        candidate.option.helped,
        candidate.nodes * cost,
        found.groups,
        found.helped,
    )


def _mix(
    candidates: Sequence[Candidate], costs: Sequence[float], question: Question, *, exact: bool
) -> Answer:
    with question.snapshot.fork():
        placed, groups = fill_all(question.snapshot, question.groups)
        buying = Buying(question, candidates, costs)
        left = buying.run(groups, exact=exact)
    price = {one.view.id: cost for one, cost in zip(candidates, costs, strict=True)}
    bought = [one.purchase for one in buying.bought]
    purchases = [replace(one, placed=placed if not at else ()) for at, one in enumerate(bought)]
    helped = [len(group) - len(rest) for group, rest in zip(groups, left, strict=True)]
    return Answer(
        tuple(purchases),
        len(placed) + sum(helped),
        sum(one.nodes * price[one.view.id] for one in bought),
        tuple(groups),
        tuple(helped),
    )


def _bound(
    answer: Answer,
    candidates: Sequence[Candidate],
    costs: Sequence[float],
    question: Question,
    *,
    exact: bool,
) -> float:
    """What helping the same pods costs at the least."""
    room = UNLIMITED if question.room is None else question.room
    with question.snapshot.fork():
        asked = [look(question.snapshot, one.template, answer.left, one.most) for one in candidates]
    figures = figures_of(asked, costs, room)
    return bound_of(figures.wanting(answer.helped), exact=exact)
