"""The report as one HTML file: it opens from disk, asks nobody for anything, and needs no script.

Everything that comes from a cluster file or a cluster is escaped, and the page's policy forbids
scripts and requests altogether.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files

import yaml

from bayplan.lab.reporting.panels import Section, sections
from bayplan.lab.reporting.plots import COLOURS
from bayplan.lab.reporting.report import Report
from bayplan.lab.reporting.tables import events_tables, figures_table, runs_table
from bayplan.lab.reporting.wording import duration, listed
from bayplan.lab.simulating.orders import Inputs, Variant

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MOST_SHOWN = 100_000
"""Letters of a cluster file that are shown."""


def as_page(report: Report, inputs: Inputs) -> str:
    """The whole page."""
    body = "\n".join(_body(report, inputs))
    title = escape(_title(report))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{_style()}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


@cache
def _style() -> str:
    return files("bayplan.lab.reporting").joinpath("page.css").read_text()


def _title(report: Report) -> str:
    names = [one.name for one in report.variants]
    return " against ".join(names[:2]) + (f" and {len(names) - 2} more" if names[2:] else "")


def _body(report: Report, inputs: Inputs) -> Iterator[str]:
    yield f"<h1>{escape(_title(report) or 'No run came to an end')}</h1>"
    yield f"<p>{escape(_summary(report))}</p>"
    yield f"<pre>{escape(report.about.command)}</pre>"
    yield from _failures(report)
    if report.variants:
        yield from _findings(report)
    yield from _inputs(inputs)
    yield (
        f"<footer><p>Made by bayplan {escape(report.about.version)}. The same inputs give the same"
        " report, to the byte.</p></footer>"
    )


def _summary(report: Report) -> str:
    seeds = f"{len(report.seeds)} seed{'s' if len(report.seeds) != 1 else ''}"
    said = f"A simulated {duration(report.seconds)}, {seeds} for each variant."
    return said + (f" Work from the trace {report.trace}." if report.trace else "")


def _failures(report: Report) -> Iterator[str]:
    if report.failures:
        seeds = listed(sorted({str(one.seed) for one in report.failures}))
        yield f'<h2 class="worse">Runs that failed</h2><p>Without seeds {escape(seeds)}:</p><ul>'
        for one in report.failures:
            yield f"<li>{escape(one.variant)}, seed {one.seed}: {escape(one.why)}</li>"
        yield "</ul>"


def _findings(report: Report) -> Iterator[str]:
    found = sections(report)
    yield _contents(found)
    yield _legend(report)
    yield '<h2 id="figures">Key figures</h2>'
    yield (
        '<p class="note">Means over seeds, with the least and the most. Differences are taken seed'
        " by seed; they are coloured where all seeds agree.</p>"
    )
    yield figures_table(report)
    for number, one in enumerate(found):
        yield f'<h2 id="s{number}">{escape(one.title)}</h2>'
        yield f'<p class="note">{escape(one.explained)}</p>'
        if one.left_out:
            yield f'<p class="note">{one.left_out} more are not drawn; they are in the CSV.</p>'
        yield f'<div class="plots">{"".join(one.plots)}</div>'
    yield events_tables(report)
    yield runs_table(report)


def _contents(found: Sequence[Section]) -> str:
    links = "".join(
        f'<li><a href="#s{number}">{escape(one.title)}</a></li>' for number, one in enumerate(found)
    )
    return f'<nav><ul><li><a href="#figures">Key figures</a></li>{links}</ul></nav>'


def _legend(report: Report) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 36 12" aria-hidden="true"><path class="v{number % COLOURS} line"'
        f' d="M0 6H36"/></svg>{escape(one.name)}</li>'
        for number, one in enumerate(report.variants)
    )
    return f'<ul class="legend">{items}</ul>'


def _inputs(inputs: Inputs) -> Iterator[str]:
    yield f"<h2>Inputs</h2><p>Seeds: {', '.join(str(one) for one in inputs.seeds)}.</p>"
    for one in inputs.variants:
        yield f"<details><summary>{escape(_told(one))}</summary>{_cluster(one)}</details>"


def _told(variant: Variant) -> str:
    parts = [f"{variant.name}: {variant.source}", f"daemons {variant.crew}"]
    parts += [f"gates {variant.gates}"] if variant.gates else []
    parts += [f"expander {variant.expander}"] if variant.expander else []
    return ", ".join(parts)


def _cluster(variant: Variant) -> str:
    text: str = yaml.dump(variant.cluster, Dumper=yaml.CSafeDumper, sort_keys=False, width=100)
    cut = f"\n… {len(text) - MOST_SHOWN:,} letters more" if len(text) > MOST_SHOWN else ""
    return f"<pre>{escape(text[:MOST_SHOWN] + cut)}</pre>"
