"""Explanations as text: the summary, then equivalent pods with their verdict, the results of
nodes, preemption, and fixes as commands.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.cli.text.output import counted, hanging, indented, printable, table, unwrapped
from bayplan.fit.decision import Refusal
from bayplan.fit.explanation import Explanation, Fix, NodeVerdict, PodState
from bayplan.fit.fixes import Risk
from bayplan.fit.preemption import Preemption
from bayplan.reports.pending import OUTCOMES, EquivalentPods, count_pods, outcome_of

if TYPE_CHECKING:
    from bayplan.queues.queue_snapshot import WaitingGroup
    from bayplan.reports.pending import HeldPods

NO_PENDING_PODS = "no pending pods"
MOST_NODES_NAMED = 3
MOST_FIXES_IN_BRIEF = 3


def blocks(
    found: list[EquivalentPods],
    held: HeldPods,
    notes: Sequence[str],
    *,
    empty: str = NO_PENDING_PODS,
    wide: bool,
) -> Iterator[RenderableType]:
    """Yield explanations, then notes about incomplete input.

    Of several explanations, only `wide` shows every node. Without any, `empty` is shown.
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
        yield Text(empty)
    yield from (Text(note) for note in notes)


# -- all together ------------------------------------------------------------------------------


def _summary(found: list[EquivalentPods], held: HeldPods) -> Iterator[RenderableType]:
    """Yield how many pods fit, and the causes of the others, the most frequent first."""
    ends = [(outcome_of(one, held), one) for one in found]
    totals: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for (end, cause), one in ends:
        totals[end] += len(one.pods)
        if cause:
            causes[cause] += len(one.pods)
            kinds[cause] += 1
    outcomes = ", ".join(
        f"{totals[end]:,} {end if totals[end] > 1 else of_one}"
        for end, of_one in OUTCOMES.items()
        if totals[end]
    )
    yield Text(f"{counted(count_pods(found), 'pod')}: {outcomes}", style="bold")
    yield Text(_rules_used(found))
    if causes:
        rows = [[str(n), str(kinds[why]), why] for why, n in causes.most_common()]
        yield indented(table(["PODS", "KINDS", "CAUSE"], rows))


def _rules_used(found: list[EquivalentPods]) -> str:
    rules: Counter[str] = Counter()
    for one in found:
        rules[one.judged.rules] += len(one.pods)
    if len(rules) == 1:
        return f"Evaluated by the rules of {next(iter(rules))}."
    listed = ", ".join(f"{count} by {name}" for name, count in rules.most_common())
    return f"Evaluated by the rules of each pod's scheduler: {listed}."


# -- one kind of pod ---------------------------------------------------------------------------


def _heading(one: EquivalentPods, held: WaitingGroup | None) -> Iterator[RenderableType]:
    """Yield the verdict; for pods that wait for their queue, that first."""
    name = Text(printable(one.explanation.pod), style="bold")
    if len(one.pods) > 1:
        name = Text.assemble(f"{len(one.pods)} pods such as ", name)
    if held is None:
        yield Text.assemble(name, " ", _verdict(one))
        return
    waits = "waits for its queue" if len(one.pods) == 1 else "wait for their queue"
    text = f"{waits} {held.queue}, position {held.position}: {held.text}"
    yield Text.assemble(name, " ", Text(printable(text), style="yellow"))
    each = "Regarding nodes, it " if len(one.pods) == 1 else "Regarding nodes, each "
    yield indented(Text.assemble(each, _verdict(one, of_one=True)))


def _one(
    one: EquivalentPods, *, wide: bool, brief: bool, says_rules: bool
) -> Iterator[RenderableType]:
    found = one.explanation
    if found.state is PodState.WAITING and not found.fits and not found.unjudged:
        yield _indented(found.message)
    if found.choice_reason:
        yield _indented(f"Chosen because {found.choice_reason}.")
    if says_rules and found.state in {PodState.WAITING, PodState.GATED}:
        yield _indented(f"Evaluated by the rules of {one.judged.rules}.")
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
    match found.state:
        case PodState.GATED:
            place = f"; without them it fits on node {found.node}" if found.node else (
                "; without them it would fit nowhere"
            )  # fmt: skip
            be = "are" if several else "is"
            return Text(printable(f"{be} {found.message}{place}"), style="yellow")
        case PodState.WAITING if found.unjudged:
            return Text(printable(found.message), style="yellow")
        case PodState.WAITING if found.node is None:
            return Text("fit nowhere" if several else "fits nowhere", style="red")
        case PodState.WAITING if several:
            return Text(printable(f"fit: {_places(one)}"), style="green")
        case _:
            return Text(printable(found.message), style="green" if found.fits else "yellow")


def _places(one: EquivalentPods) -> str:
    """Return the number of pods by node, the most first."""
    named = one.nodes.most_common(MOST_NODES_NAMED)
    listed = [f"{count} on node {name}" for name, count in named]
    more = len(one.nodes) - len(named)
    if more:
        rest = sum(one.nodes.values()) - sum(count for _, count in named)
        listed.append(f"{rest} on {counted(more, 'other node')}")
    return ", ".join(listed)


def _preemption(preemption: Preemption | None) -> Iterator[RenderableType]:
    if preemption is None or preemption.node is None:
        return
    victims = ", ".join(pod.key for pod in preemption.victims)
    text = f"Preemption would evict {victims} from node {preemption.node}."
    if preemption.budgets_broken:
        text += f" For {preemption.budgets_broken} of them this would violate a disruption budget."
    yield ""
    yield _indented(text)


MOST_NODES_SHOWN = 20
"""With more nodes, the table groups them by reason; `-o wide` shows every node."""
MOST_FITTING_SHOWN = 3
MOST_DETAILS_SHOWN = 3

_NodeRow = list[str | Text]


def node_table(found: Explanation, *, wide: bool) -> Table:
    """Return a table of all nodes, or of reasons if there are many nodes."""
    return table(["NODE", "SCORE", "REJECTED BY", "REASON"], _rows(found, wide=wide))


def _rows(found: Explanation, *, wide: bool) -> list[_NodeRow]:
    if wide or len(found.nodes) <= MOST_NODES_SHOWN:
        return [_row(answer, found.node, wide=wide) for answer in found.nodes]
    fitting = [answer for answer in found.nodes if answer.fits]
    shown = [_row(answer, found.node, wide=wide) for answer in fitting[:MOST_FITTING_SHOWN]]
    if len(fitting) > MOST_FITTING_SHOWN:
        shown.append([f"{len(fitting) - MOST_FITTING_SHOWN} more that fit", "", "", ""])
    return shown + _grouped([answer for answer in found.nodes if not answer.fits])


def _row(answer: NodeVerdict, chosen: str | None, *, wide: bool) -> _NodeRow:
    style = "green" if answer.name == chosen else ""
    name = Text(printable(answer.name), style=style)
    if answer.refusal is None:
        points = _points(answer) if wide else ""
        return [name, str(answer.scores["total"]), "", points]
    return [name, "-", answer.refusal.plugin, _reason(answer.refusal, "; ".join(answer.details))]


def _reason(refusal: Refusal, details: str) -> str:
    return ": ".join(filter(None, (", ".join(refusal.reasons), details)))


def _points(answer: NodeVerdict) -> str:
    return ", ".join(f"{name} {given}" for name, given in answer.scores.items() if name != "total")


def _grouped(answers: list[NodeVerdict]) -> list[_NodeRow]:
    """Return a row for each reason, the most frequent first, with its details."""
    groups: dict[Refusal, list[NodeVerdict]] = defaultdict(list)
    for answer in answers:
        if answer.refusal is not None:
            groups[answer.refusal].append(answer)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [
        [_several(some), "-", refusal.plugin, _reason(refusal, _facts(some))]
        for refusal, some in ordered
    ]


def _several(answers: list[NodeVerdict]) -> str:
    first = answers[0].name
    return first if len(answers) == 1 else f"{len(answers)} nodes, such as {first}"


def _facts(answers: list[NodeVerdict]) -> str:
    """Return the details of rejections, the most frequent first, with the number of nodes."""
    facts = Counter("; ".join(answer.details) for answer in answers if answer.details)
    if len(facts) == 1 and facts.total() == len(answers):
        return next(iter(facts))
    usual = facts.most_common(MOST_DETAILS_SHOWN)
    listed = [f"{fact} ({count})" for fact, count in usual]
    return "; ".join([*listed, "…"] if len(facts) > len(usual) else listed)


RISKS = {
    Risk.EVICTS: "a running pod is evicted",
    Risk.UNBALANCES: "pods are spread less evenly",
    Risk.RELAXES_A_RULE: "a constraint is removed",
    Risk.COSTS: "it adds cost",
    Risk.RESTARTS: "all pods of the workload are replaced, including running ones",
    Risk.RUNS_WITH_LESS: "the pod gets fewer resources than it requested",
    Risk.OPENS_A_NODE: "other pods may be scheduled to that node too",
    Risk.OVERLOADS: "the node may be overloaded",
    Risk.NEEDS_MANUAL_STEPS: "no command alone is enough",
}


def fix_blocks(found: Explanation, most: int) -> Iterator[RenderableType]:
    """Yield the smallest fixes, or what was tried if none was found."""
    if not found.fixes:
        if found.search is not None:
            yield ""
            yield indented(Text(printable(found.search.summary)))
        return
    yield ""
    yield indented(Text("Smallest fixes, each tried on a copy of this cluster:", style="bold"))
    for number, fix in enumerate(found.fixes[:most], 1):
        yield from _fix(number, fix)
    if len(found.fixes) > most:
        yield indented(Text(f"{len(found.fixes) - most} more: explain this pod alone to see them."))


def _command(command: str) -> Iterator[RenderableType]:
    """Yield a command to copy; one of several lines without margin, for its here-document."""
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
        listed = "; ".join(_risk(risk, fix) for risk in risks)
        yield indented(hanging("", Text(f"Risk: {listed}.", style="dim")))


def _risk(risk: Risk, fix: Fix) -> str:
    if risk is Risk.NEEDS_MANUAL_STEPS and any(step.command for step in fix.steps):
        return "the command alone is not enough"
    return RISKS[risk]
