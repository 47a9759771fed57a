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
from bayplan.checks import check as look
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
from bayplan.cli.text.output import Format, emit, show
from bayplan.cli.text.progress import LOADING, Bar
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
    """Say what is wrong with a cluster, why it matters, and what to do next; nothing is changed.

    Drivers without limits, nodes without drivers or over their limit, volumes that do not come or
    go, kubelets too old or too new, pods that wait and the true cause of it, queues that can never
    admit, groups whose templates lie, and more: docs/check.md has every code. The same trouble of
    many objects is one finding, with some of them as examples; `-o wide` shows more of them.

    What rests on a kind of object that was not read is not looked for, and that is said.

    Of a dump (-f), or of the cluster that kubectl would talk to, which is only read. With -n, pods,
    claims and groups of other namespaces are counted and not told of.

    Exit codes: 0 nothing was found that is as serious as --fail-on says, 1 something was, 2 bad
    input, or the cluster cannot be read.

    Parameters
    ----------
    only
        Look for nothing but these codes; several with commas.
    ignore
        Look for all but these codes; several with commas.
    fail_on
        From which severity on the exit code is 1.
    grace
        Leave out pods, nodes and claims that are younger, such as 90s or 1h; of a dump, younger
        than the moment that it was taken at.
    groups
        Node groups with their templates and bounds, as `bayplan plan` has them.
    """
    codes = _codes(only, ignore)
    profile = judged_as(profile_from(feature_gates, missing_driver), judge)
    declared = declared_groups(groups)
    with Bar() as bar:
        loaded = source.load("check", progress=bar)
        if source.filename and not any(isinstance(one, Node | Pod) for one in loaded.objects):
            raise BadInput("there is neither a pod nor a node in the dump")
        bar.at("Looking", LOADING)
        subject = CheckedCluster(
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
        report = look(subject, codes)
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
    """Codes with commas or one by one, in any case of letters; BadInput if there is none such."""
    known = {code.lower(): code for code in KINDS}
    said = [part.strip() for text in written for part in text.split(",") if part.strip()]
    for one in said:
        if one.lower() not in known:
            raise BadInput(f"{flag}: {no_such('code', one, KINDS)}")
    return [known[one.lower()] for one in said]


def _exit_code(report: CheckReport, fail_on: str) -> int:
    if fail_on == "never":
        return EXIT_OK
    least = Severity(fail_on).rank
    return EXIT_NO if any(one.severity.rank <= least for one in report.findings) else EXIT_OK
