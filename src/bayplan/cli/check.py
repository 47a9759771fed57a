"""`bayplan check`: what is wrong with a cluster, why it matters, and what to do next."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from bayplan.base.clock import WallClock
from bayplan.base.durations import Seconds
from bayplan.base.suggestions import no_such
from bayplan.checks import KINDS, CheckedCluster, CheckReport, Severity
from bayplan.checks import check as run_checks
from bayplan.checks.registry import RENAMED
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.options.cluster import (
    As,
    Gates,
    Missing,
    Output,
    judged_as,
    profile_from,
)
from bayplan.cli.options.source import HERE, ClusterSource, incomplete_data
from bayplan.cli.text.check import blocks
from bayplan.cli.text.output import Format, emit, notices, show
from bayplan.cli.text.progress import LOADING, ProgressBar
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.reports.checks import check_data, kinds_read, moment_of
from bayplan.reports.declared import declared_groups

Codes = Annotated[
    tuple[str, ...],
    Parameter(show_default=False),
]


def check(  # noqa: PLR0913 - one for each option
    *,
    source: ClusterSource = HERE,
    only: Codes = (),
    ignore: Codes = (),
    fail_on: Literal["error", "warning", "info", "never"] = "warning",
    grace: Seconds = Seconds(300.0),
    groups: Path | None = None,
    judge: As = None,
    output: Output = Format.table,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Check a cluster: report what is wrong, why it matters, and what to do next. Read-only.

    Checks attach limits, CSI drivers, volume attachments, version skew, pending pods and their
    causes, queues, node group templates and more; docs/check.md lists every code. The same problem
    of many objects is one finding with examples; `-o wide` shows more examples.

    Checks that need a kind of object that was not read are skipped, and reported as skipped.

    The cluster is a dump (-f), or the current context of the kubeconfig. With -n, only pods, claims
    and groups of that namespace are reported; those of other namespaces are still counted.

    Exit codes: 0 no finding of at least the severity of --fail-on, 1 there is one, 2 bad input, or
    the cluster cannot be read.

    Parameters
    ----------
    only
        Run only the checks with these codes, separated by commas.
    ignore
        Do not run the checks with these codes, separated by commas.
    fail_on
        The lowest severity with which the exit code is 1.
    grace
        Ignore pods, nodes and claims that are younger, such as 90s or 1h; in a dump, relative to
        the time at which it was taken.
    groups
        A file of node groups with their templates and bounds, as for `bayplan plan`.
    """
    codes = _codes(only, ignore)
    profile = judged_as(profile_from(feature_gates, missing_driver), judge)
    declared = declared_groups(groups)
    with ProgressBar() as bar:
        loaded = source.load("check", progress=bar)
        if source.filename and not any(isinstance(one, Node | Pod) for one in loaded.objects):
            raise BadInput("the dump contains neither pods nor nodes")
        bar.at("Checking", LOADING)
        cluster = CheckedCluster(
            loaded.objects,
            moment_of(loaded) if source.filename else WallClock().now(),
            profile=profile,
            read=kinds_read(loaded),
            server_version=loaded.server_version,
            groups=declared,
            left_out=loaded.problems,
            grace=timedelta(seconds=grace),
            namespace=source.chosen,
        )
        report = run_checks(cluster, codes)
    if output.is_for_people:
        show(blocks(report, wide=output is Format.wide))
        show(map(Text, source.notes(loaded, "check")))
    else:
        emit(check_data(report, incomplete_data(loaded, "check")), output)
    return _exit_code(report, fail_on)


def _codes(only: Iterable[str], ignore: Iterable[str]) -> Collection[str]:
    wanted, unwanted = _named(only, "--only"), _named(ignore, "--ignore")
    chosen = wanted or list(KINDS)
    return [code for code in chosen if code not in unwanted]


def _named(written: Iterable[str], flag: str) -> list[str]:
    """Return codes that are given with commas or repeated flags, in upper or lower case.

    Former codes are accepted with a warning; BadInput for an unknown one.
    """
    known = {code.lower(): code for code in (*KINDS, *RENAMED)}
    given = [part.strip() for text in written for part in text.split(",") if part.strip()]
    for one in given:
        if one.lower() not in known:
            raise BadInput(f"{flag}: {no_such('code', one, KINDS)}")
    return [_current(known[one.lower()], flag) for one in given]


def _current(code: str, flag: str) -> str:
    """Return the current name of a code; a former one is reported as deprecated."""
    if code in KINDS:
        return code
    text = f"warning: {flag} {code}: deprecated, renamed to {RENAMED[code]}"
    notices().print(text, style="yellow")
    return RENAMED[code]


def _exit_code(report: CheckReport, fail_on: str) -> int:
    if fail_on == "never":
        return EXIT_OK
    least = Severity(fail_on).rank
    return EXIT_NO if any(one.severity.rank <= least for one in report.findings) else EXIT_OK
