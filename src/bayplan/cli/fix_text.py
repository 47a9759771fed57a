"""Fixes for people: what each does, the commands that make it, and what may go wrong."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from bayplan.cli.output import hanging, indented, printable, unwrapped
from bayplan.fit.explanation import Explanation, Fix
from bayplan.fit.fixes import Risk

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
