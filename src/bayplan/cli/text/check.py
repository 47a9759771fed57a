"""Findings for people: the most serious first, each with a few of the objects that have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from bayplan.checks import CheckReport, Example, Finding, Severity
from bayplan.cli.text.output import counted, indented, printable

MOST_EXAMPLES = 3
"""With more, a table names the first; `-o wide` shows all that are kept."""
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def blocks(report: CheckReport, *, wide: bool) -> Iterator[RenderableType]:
    """What it comes to, then every finding."""
    yield Text(_summary(report), style="bold")
    for one in report.findings:
        yield ""
        yield from _finding(one, wide=wide)
    if report.unasked:
        yield ""
        yield from _unasked(report, wide=wide)


def _summary(report: CheckReport) -> str:
    counts = Counter(one.severity for one in report.findings)
    said = [counted(counts[one], _NAMES[one]) for one in Severity if counts[one]]
    return ", ".join(said) if said else "nothing found"


_NAMES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def _finding(one: Finding, *, wide: bool) -> Iterator[RenderableType]:
    style = _STYLES[one.severity]
    heading = Text.assemble((one.severity.value, style), "  ", (one.kind.code, "bold"))
    yield heading.append(f"  {printable(one.text)}")
    if wide:
        yield from (_indented(_example(example)) for example in one.examples)
        if (more := one.count - len({example.name for example in one.examples})) > 0:
            yield _indented(f"and {more:,} more")
    else:
        yield _indented(_examples(one))
    yield _indented(f"why:  {one.kind.why}")
    yield _indented(f"next: {one.advice}")


def _examples(one: Finding) -> str:
    shown = [_example(example) for example in one.examples[:MOST_EXAMPLES]]
    more = one.count - len({example.name for example in one.examples[:MOST_EXAMPLES]})
    mark = "; " if any(example.detail for example in one.examples[:MOST_EXAMPLES]) else ", "
    said = mark.join(shown)
    return f"{said}{mark}and {more:,} more" if more > 0 else said


def _example(example: Example) -> str:
    return f"{example.name}: {example.detail}" if example.detail else example.name


def _unasked(report: CheckReport, *, wide: bool) -> Iterator[RenderableType]:
    """What could not be looked for, and what for want of."""
    kinds, codes = ", ".join(report.unread), counted(len(report.unasked), "code")
    yield Text(f"not looked for: {codes}, since nothing was read of {kinds}", style="dim")
    if wide:
        yield _indented(", ".join(one.code for one in report.unasked))


def _indented(text: str) -> RenderableType:
    return indented(Text(printable(text)))
