"""Explanations for people: what it comes to, then every kind of pod with its verdict, what nodes
say, preemption, and the nearest fixes as commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from bayplan.cli.explain_nodes import node_table
from bayplan.cli.fix_text import fix_blocks
from bayplan.cli.output import counted, indented, printable, table
from bayplan.fit.explanation import Standing
from bayplan.fit.preemption import Preemption
from bayplan.reports.pending import OUTCOMES, EquivalentPods, count_pods, outcome_of

if TYPE_CHECKING:
    from bayplan.queues.survey import WaitingGroup
    from bayplan.reports.pending import HeldPods

NOBODY = "no pod waits for a node"
MOST_NODES_NAMED = 3
MOST_FIXES_IN_BRIEF = 3


def blocks(
    found: list[EquivalentPods],
    held: HeldPods,
    notes: Sequence[str],
    *,
    nobody: str = NOBODY,
    wide: bool,
) -> Iterator[RenderableType]:
    """Explanations, one after another, then what they rest on less than they should; of several,
    only `wide` shows every node. If there are none, `nobody` is what is said.
    """
    several = count_pods(found) > 1
    if several:
        yield from _summary(found, held)
    for index, one in enumerate(found):
        if index or several:
            yield ""
        yield from _heading(one, held.get(one.explanation.pod))
        yield from _one(one, wide=wide, brief=several and not wide, says_rules=not several)
    if not found:
        yield Text(nobody)
    yield from (Text(note) for note in notes)


# -- all together ------------------------------------------------------------------------------


def _summary(found: list[EquivalentPods], held: HeldPods) -> Iterator[RenderableType]:
    """How many fit, and what keeps the others, the most usual first."""
    ends = [(outcome_of(one, held), one) for one in found]
    totals: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for (end, cause), one in ends:
        totals[end] += len(one.pods)
        if cause:
            causes[cause] += len(one.pods)
            kinds[cause] += 1
    said = ", ".join(
        f"{totals[end]:,} {end if totals[end] > 1 else of_one}"
        for end, of_one in OUTCOMES.items()
        if totals[end]
    )
    yield Text(f"{counted(count_pods(found), 'pod')}: {said}", style="bold")
    yield Text(_whose(found))
    if causes:
        rows = [[str(n), str(kinds[why]), why] for why, n in causes.most_common()]
        yield indented(table(["PODS", "KINDS", "WHY THEY WAIT"], rows))


def _whose(found: list[EquivalentPods]) -> str:
    rules: Counter[str] = Counter()
    for one in found:
        rules[one.judged.rules] += len(one.pods)
    if len(rules) == 1:
        return f"Judged as {next(iter(rules))} would."
    said = ", ".join(f"{count} as {name}" for name, count in rules.most_common())
    return f"Judged as the scheduler of each would: {said}."


# -- one kind of pod ---------------------------------------------------------------------------


def _heading(one: EquivalentPods, held: WaitingGroup | None) -> Iterator[RenderableType]:
    """The verdict; of pods that wait for their queue, that first."""
    name = Text(printable(one.explanation.pod), style="bold")
    if len(one.pods) > 1:
        name = Text.assemble(f"{len(one.pods)} pods such as ", name)
    if held is None:
        yield Text.assemble(name, " ", _verdict(one))
        return
    waits = "waits for its queue" if len(one.pods) == 1 else "wait for their queue"
    text = f"{waits} {held.queue}, position {held.position}: {held.text}"
    yield Text.assemble(name, " ", Text(printable(text), style="yellow"))
    each = "As for nodes, it " if len(one.pods) == 1 else "As for nodes, each "
    yield indented(Text.assemble(each, _verdict(one, of_one=True)))


def _one(
    one: EquivalentPods, *, wide: bool, brief: bool, says_rules: bool
) -> Iterator[RenderableType]:
    found = one.explanation
    if found.standing is Standing.WAITING and not found.fits and not found.unjudged:
        yield _indented(found.message)
    if found.why:
        yield _indented(f"Chosen because {found.why}.")
    if says_rules and found.standing in {Standing.WAITING, Standing.GATED}:
        yield _indented(f"Judged as {one.judged.rules} would.")
    for note in one.judged.notes:
        yield indented(Text(printable(note), style="yellow"))
    if wide and len(one.pods) > 1:
        yield _indented(f"Pods: {', '.join(one.pods)}.")
    if found.nodes and not brief:
        yield ""
        yield indented(node_table(found, wide=wide))
    yield from _preemption(found.preemption)
    yield from fix_blocks(found, MOST_FIXES_IN_BRIEF if brief else len(found.fixes))


def _indented(text: str) -> RenderableType:
    return indented(Text(printable(text)))


def _verdict(one: EquivalentPods, *, of_one: bool = False) -> Text:
    found, several = one.explanation, len(one.pods) > 1 and not of_one
    match found.standing:
        case Standing.GATED:
            place = f"; without them it fits node {found.node}" if found.node else (
                "; without them it would fit nowhere"
            )  # fmt: skip
            be = "are" if several else "is"
            return Text(printable(f"{be} {found.message}{place}"), style="yellow")
        case Standing.WAITING if found.unjudged:
            return Text(printable(found.message), style="yellow")
        case Standing.WAITING if found.node is None:
            return Text("fit nowhere" if several else "fits nowhere", style="red")
        case Standing.WAITING if several:
            return Text(printable(f"fit: {_places(one)}"), style="green")
        case _:
            return Text(printable(found.message), style="green" if found.fits else "yellow")


def _places(one: EquivalentPods) -> str:
    """Where pods go, most to the first."""
    named = one.nodes.most_common(MOST_NODES_NAMED)
    said = [f"{count} on node {name}" for name, count in named]
    more = len(one.nodes) - len(named)
    if more:
        rest = sum(one.nodes.values()) - sum(count for _, count in named)
        said.append(f"{rest} on {counted(more, 'other node')}")
    return ", ".join(said)


def _preemption(preemption: Preemption | None) -> Iterator[RenderableType]:
    if preemption is None or preemption.node is None:
        return
    victims = ", ".join(pod.key for pod in preemption.victims)
    text = f"Preemption would make room on node {preemption.node} by evicting {victims}."
    if preemption.budgets_broken:
        text += f" For {preemption.budgets_broken} of them a disruption budget says no."
    yield ""
    yield _indented(text)
