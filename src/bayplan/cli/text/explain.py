"""Explanations for people: what it comes to, then every kind of pod with its verdict, what nodes
say, preemption, and the nearest fixes as commands.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.cli.text.output import counted, hanging, indented, printable, table, unwrapped
from bayplan.fit.explanation import Explanation, Fix, NodeAnswer, Standing
from bayplan.fit.fixes import Risk
from bayplan.fit.preemption import Preemption
from bayplan.fit.refusal import Refusal
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


MOST_NODES_SHOWN = 20
"""With more, a table shows the ways in which nodes refuse; `-o wide` shows every node."""
MOST_FITTING_SHOWN = 3
MOST_DETAILS_SHOWN = 3

_NodeRow = list[str | Text]


def node_table(found: Explanation, *, wide: bool) -> Table:
    """Every node, or every way of refusing."""
    return table(["NODE", "SCORE", "REFUSED BY", "REASON"], _rows(found, wide=wide))


def _rows(found: Explanation, *, wide: bool) -> list[_NodeRow]:
    if wide or len(found.nodes) <= MOST_NODES_SHOWN:
        return [_row(answer, found.node, wide=wide) for answer in found.nodes]
    fitting = [answer for answer in found.nodes if answer.fits]
    shown = [_row(answer, found.node, wide=wide) for answer in fitting[:MOST_FITTING_SHOWN]]
    if len(fitting) > MOST_FITTING_SHOWN:
        shown.append([f"{len(fitting) - MOST_FITTING_SHOWN} more that fit", "", "", ""])
    return shown + _grouped([answer for answer in found.nodes if not answer.fits])


def _row(answer: NodeAnswer, chosen: str | None, *, wide: bool) -> _NodeRow:
    style = "green" if answer.name == chosen else ""
    name = Text(printable(answer.name), style=style)
    if answer.refusal is None:
        said = _points(answer) if wide else ""
        return [name, str(answer.scores["total"]), "", said]
    return [name, "-", answer.refusal.plugin, _reason(answer.refusal, "; ".join(answer.details))]


def _reason(refusal: Refusal, details: str) -> str:
    return ": ".join(filter(None, (", ".join(refusal.reasons), details)))


def _points(answer: NodeAnswer) -> str:
    return ", ".join(f"{name} {given}" for name, given in answer.scores.items() if name != "total")


def _grouped(answers: list[NodeAnswer]) -> list[_NodeRow]:
    """One row for each way of refusing, the most usual first, with the facts behind it."""
    groups: dict[Refusal, list[NodeAnswer]] = defaultdict(list)
    for answer in answers:
        if answer.refusal is not None:
            groups[answer.refusal].append(answer)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [
        [_several(some), "-", refusal.plugin, _reason(refusal, _facts(some))]
        for refusal, some in ordered
    ]


def _several(answers: list[NodeAnswer]) -> str:
    first = answers[0].name
    return first if len(answers) == 1 else f"{len(answers)} nodes, such as {first}"


def _facts(answers: list[NodeAnswer]) -> str:
    """What is behind the refusals: the most usual, each with how many nodes it is true of."""
    facts = Counter("; ".join(answer.details) for answer in answers if answer.details)
    if len(facts) == 1 and facts.total() == len(answers):
        return next(iter(facts))
    usual = facts.most_common(MOST_DETAILS_SHOWN)
    said = [f"{fact} ({counted})" for fact, counted in usual]
    return "; ".join([*said, "…"] if len(facts) > len(usual) else said)


RISKS = {
    Risk.EVICTS: "a pod that runs is ended",
    Risk.UNBALANCES: "pods are spread less evenly",
    Risk.RELAXES_A_RULE: "something that was asked for is given up",
    Risk.COSTS: "there is more to pay for",
    Risk.RESTARTS: "all pods of the workload are replaced, those that run too",
    Risk.RUNS_WITH_LESS: "the pod has less than it asked for",
    Risk.OPENS_A_NODE: "other pods may go to that node as well",
    Risk.OVERLOADS: "the node is asked for more than it may be able to do",
    Risk.NEEDS_HANDS: "no command alone does it",
}


def fix_blocks(found: Explanation, most: int) -> Iterator[RenderableType]:
    """The nearest fixes, or how far was looked for them."""
    if not found.fixes:
        if found.sought is not None:
            yield ""
            yield indented(Text(printable(found.sought.summary)))
        return
    yield ""
    yield indented(Text("Nearest fixes, each tried on a copy of this cluster:", style="bold"))
    for number, fix in enumerate(found.fixes[:most], 1):
        yield from _fix(number, fix)
    if len(found.fixes) > most:
        yield indented(Text(f"{len(found.fixes) - most} more: explain that pod alone."))


def _command(command: str) -> Iterator[RenderableType]:
    """A command to be copied; one of several lines as it is, since its end must begin a line."""
    lines = command.splitlines()
    margin = "     " if len(lines) == 1 else ""
    for line in lines:
        yield unwrapped(Text(f"{margin}{printable(line)}", style="cyan"))


def _fix(number: int, fix: Fix) -> Iterator[RenderableType]:
    yield indented(hanging(f"{number}.", Text(printable(fix.summary))))
    for step in fix.steps:
        yield from _command(step.command)
    risks = dict.fromkeys(risk for step in fix.steps for risk in step.risks)
    if risks:
        said = "; ".join(_risk(risk, fix) for risk in risks)
        yield indented(hanging("", Text(f"Risk: {said}.", style="dim")))


def _risk(risk: Risk, fix: Fix) -> str:
    if risk is Risk.NEEDS_HANDS and any(step.command for step in fix.steps):
        return "it takes more than the command"
    return RISKS[risk]
