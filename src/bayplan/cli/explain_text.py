"""Explanations for people: the verdict first, then every node, preemption and the nearest fixes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from bayplan.cli.cluster import those_left_out
from bayplan.cli.output import indented, printable, table
from bayplan.fit.explanation import Explanation, Fix, NodeAnswer, Standing
from bayplan.fit.preemption import Preemption
from bayplan.fit.refusal import Refusal

if TYPE_CHECKING:
    from bayplan.cli.held import Held
    from bayplan.scheduler.batch.inquiry import WaitingGroup

MOST_NODES_SHOWN = 20
"""With more, a table shows the ways in which nodes refuse; `-o wide` shows every node."""
MOST_FIXES_IN_BRIEF = 3


def blocks(
    found: list[Explanation], held: Held, left_out: int, *, wide: bool
) -> Iterator[RenderableType]:
    """Explanations, one after another; of several, only `wide` shows every node."""
    for index, explanation in enumerate(found):
        if index:
            yield ""
        yield from _heading(explanation, held.get(explanation.pod))
        yield from _one(explanation, wide=wide, brief=len(found) > 1 and not wide)
    if not found:
        yield "no pod waits for a node"
    if len(found) > 1:
        fitting = sum(one.fits and one.pod not in held for one in found)
        yield f"\n{fitting} of {len(found)} pods that wait fit"
    if left_out:
        yield those_left_out(left_out)


def _heading(explanation: Explanation, held: WaitingGroup | None) -> Iterator[RenderableType]:
    """The verdict; of a pod that waits for its queue, that first."""
    name = (printable(explanation.pod), "bold")
    if held is None:
        yield Text.assemble(name, " ", _verdict(explanation))
        return
    text = f"waits for its queue {held.queue}, position {held.position}: {held.text}"
    yield Text.assemble(name, " ", Text(printable(text), style="yellow"))
    yield indented(Text.assemble("As for nodes, it ", _verdict(explanation)))


def _one(explanation: Explanation, *, wide: bool, brief: bool) -> Iterator[RenderableType]:
    if explanation.standing is Standing.WAITING and not explanation.fits:
        yield _indented(explanation.message)
    if explanation.why:
        yield _indented(f"Chosen because {explanation.why}.")
    if explanation.nodes and not brief:
        yield ""
        headings = ["NODE", "SCORE", "REFUSED BY", "REASON"]
        yield indented(table(headings, _rows(explanation, wide=wide)))
    yield from _preemption(explanation.preemption)
    yield from _fixes(explanation.fixes[:MOST_FIXES_IN_BRIEF] if brief else explanation.fixes)


def _indented(text: str) -> RenderableType:
    return indented(Text(printable(text)))


def _verdict(explanation: Explanation) -> Text:
    match explanation.standing:
        case Standing.GATED:
            place = f"; without them it fits node {explanation.node}" if explanation.node else (
                "; without them it would fit nowhere"
            )  # fmt: skip
            return Text(printable(f"is {explanation.message}{place}"), style="yellow")
        case Standing.WAITING if explanation.node is None:
            return Text("fits nowhere", style="red")
        case _:
            style = "green" if explanation.fits else "yellow"
            return Text(printable(explanation.message), style=style)


def _rows(explanation: Explanation, *, wide: bool) -> list[list[str | Text]]:
    if wide or len(explanation.nodes) <= MOST_NODES_SHOWN:
        return [_row(answer, explanation.node, wide=wide) for answer in explanation.nodes]
    fitting = [answer for answer in explanation.nodes if answer.fits]
    shown = [_row(answer, explanation.node, wide=wide) for answer in fitting[:3]]
    if len(fitting) > 3:
        shown.append([f"{len(fitting) - 3} more that fit", "", "", ""])
    return shown + _grouped([answer for answer in explanation.nodes if not answer.fits])


def _row(answer: NodeAnswer, chosen: str | None, *, wide: bool) -> list[str | Text]:
    style = "green" if answer.name == chosen else ""
    name = Text(printable(answer.name), style=style)
    if answer.refusal is None:
        said = _points(answer) if wide else ""
        return [name, str(answer.scores["total"]), "", said]
    return [name, "-", answer.refusal.plugin, _reason(answer.refusal, answer.details)]


def _reason(refusal: Refusal, details: tuple[str, ...]) -> str:
    return ": ".join(filter(None, (", ".join(refusal.reasons), "; ".join(details))))


def _points(answer: NodeAnswer) -> str:
    return ", ".join(f"{name} {given}" for name, given in answer.scores.items() if name != "total")


def _grouped(answers: list[NodeAnswer]) -> list[list[str | Text]]:
    """One row for each way of refusing, the most usual first."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for answer in answers:
        if answer.refusal is not None:
            groups[answer.refusal.plugin, answer.refusal.reasons].append(answer.name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [
        [_several(names), "-", plugin, ", ".join(reasons)] for (plugin, reasons), names in ordered
    ]


def _several(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} nodes, such as {names[0]}"


def _preemption(preemption: Preemption | None) -> Iterator[RenderableType]:
    if preemption is None or preemption.node is None:
        return
    victims = ", ".join(pod.key for pod in preemption.victims)
    text = f"Preemption would make room on node {preemption.node} by evicting {victims}."
    if preemption.budgets_broken:
        text += f" For {preemption.budgets_broken} of them a disruption budget says no."
    yield ""
    yield _indented(text)


def _fixes(fixes: Sequence[Fix]) -> Iterator[RenderableType]:
    if not fixes:
        return
    yield ""
    yield indented(Text("Nearest fixes, each tried on a copy of this cluster:", style="bold"))
    rows = [[f"{i}.", fix.summary] for i, fix in enumerate(fixes, 1)]
    shown = table(["", ""], rows)
    shown.show_header = False
    yield indented(shown)
