"""Findings as text: the most serious first, each with examples of the affected objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from bayplan.checks import CheckReport, Example, Finding, Severity
from bayplan.cli.text.output import counted, indented, printable

MOST_EXAMPLES = 3
"""The number of examples shown; `-o wide` shows all that are kept."""
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def blocks(report: CheckReport, *, wide: bool) -> Iterator[RenderableType]:
    """Yield the summary, then every finding, then the skipped checks."""
    yield Text(_summary(report), style="bold")
    for one in report.findings:
        yield ""
        yield from _finding(one, wide=wide)
    if report.skipped:
        yield ""
        yield from _skipped(report, wide=wide)


def _summary(report: CheckReport) -> str:
    counts = Counter(one.severity for one in report.findings)
    parts = [counted(counts[one], _NAMES[one]) for one in Severity if counts[one]]
    return ", ".join(parts) if parts else "no findings"


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
    listed = mark.join(shown)
    return f"{listed}{mark}and {more:,} more" if more > 0 else listed


def _example(example: Example) -> str:
    return f"{example.name}: {example.detail}" if example.detail else example.name


def _skipped(report: CheckReport, *, wide: bool) -> Iterator[RenderableType]:
    """Yield the number of skipped checks and the kinds that they need."""
    kinds, checks = ", ".join(report.not_read), counted(len(report.skipped), "check")
    yield Text(f"{checks} skipped, because these kinds were not read: {kinds}", style="dim")
    if wide:
        yield _indented(", ".join(one.code for one in report.skipped))


def _indented(text: str) -> RenderableType:
    return indented(Text(printable(text)))
