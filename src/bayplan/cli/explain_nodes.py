"""What every node says of a pod, as a table; of many nodes, the ways in which they refuse it."""

from __future__ import annotations

from collections import Counter, defaultdict

from rich.table import Table
from rich.text import Text

from bayplan.cli.output import printable, table
from bayplan.fit.explanation import Explanation, NodeAnswer
from bayplan.fit.refusal import Refusal

MOST_NODES_SHOWN = 20
"""With more, a table shows the ways in which nodes refuse; `-o wide` shows every node."""
MOST_FITTING_SHOWN = 3
MOST_DETAILS_SHOWN = 3

Row = list[str | Text]


def node_table(found: Explanation, *, wide: bool) -> Table:
    """Every node, or every way of refusing."""
    return table(["NODE", "SCORE", "REFUSED BY", "REASON"], _rows(found, wide=wide))


def _rows(found: Explanation, *, wide: bool) -> list[Row]:
    if wide or len(found.nodes) <= MOST_NODES_SHOWN:
        return [_row(answer, found.node, wide=wide) for answer in found.nodes]
    fitting = [answer for answer in found.nodes if answer.fits]
    shown = [_row(answer, found.node, wide=wide) for answer in fitting[:MOST_FITTING_SHOWN]]
    if len(fitting) > MOST_FITTING_SHOWN:
        shown.append([f"{len(fitting) - MOST_FITTING_SHOWN} more that fit", "", "", ""])
    return shown + _grouped([answer for answer in found.nodes if not answer.fits])


def _row(answer: NodeAnswer, chosen: str | None, *, wide: bool) -> Row:
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


def _grouped(answers: list[NodeAnswer]) -> list[Row]:
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
