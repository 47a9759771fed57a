"""Options of commands on a cluster: its source, and the rules that apply."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Literal

from cyclopts import Parameter

from bayplan.cli.errors import BadInput
from bayplan.cli.text.output import Format, notices, printable
from bayplan.cli.text.progress import ProgressBar
from bayplan.fit import MissingDriver, Profile
from bayplan.fit.profile import KUBERNETES_VERSION, OUR_SCHEDULER
from bayplan.kube import codec
from bayplan.kube.codec import ObjectError
from bayplan.kube.gates import FeatureGates, GateError
from bayplan.kube.manifests import LoadError, LoadResult, load

MAX_VOLUMES = "KUBE_MAX_PD_VOLS"
MISSPELT = 0.8
"""How similar a kind must be to a known one to be taken for a misspelling."""
MOST_PROBLEMS_SHOWN = 20
KINDS = (
    "pods,nodes,namespaces,csinodes,csidrivers,csistoragecapacities,storageclasses,"
    "persistentvolumes,persistentvolumeclaims,volumeattachments,services,replicasets,statefulsets,"
    "replicationcontrollers,poddisruptionbudgets,priorityclasses,daemonsets,"
    "jobs"
)
"""Every kind that affects scheduling, by kubectl's names."""
NEEDS_A_DUMP = (
    "-f is empty: give a dump with -f FILE, -f DIR or -f -, such as\n"
    "  bayplan dump | bayplan {command} -f -\n"
    "or omit -f to read the cluster that kubectl uses"
)

Source = Annotated[
    tuple[str, ...],
    Parameter(
        name=["--filename", "-f"],
        allow_leading_hyphen=True,
        show_default=False,
        help="A dump of the cluster: a file (JSON or YAML, also gzipped), a directory, or - for"
        " standard input; may be repeated. Of duplicate objects the last one counts.",
    ),
]
Partial = Annotated[
    bool,
    Parameter(
        negative="",
        help="Use the readable part of a dump that is truncated or malformed, instead of failing.",
    ),
]
As = Annotated[
    Literal["kube-scheduler", "bayplan"] | None,
    Parameter(
        name="--as",
        help=f"Evaluate pods by the rules of kube-scheduler {KUBERNETES_VERSION}, or of Bayplan;"
        " by default those of each pod's own scheduler.",
    ),
]
Output = Annotated[Format, Parameter(name=["--output", "-o"], help="The output format.")]
Gates = Annotated[
    str, Parameter(help="Feature gates, such as VolumeLimitScaling=false,AttachVolumeLimit=true.")
]
Missing = Annotated[
    Literal["hold-back", "opt-in"],
    Parameter(
        help="Whether a pod is rejected on a node without its CSI driver: hold-back rejects it"
        " unless the driver opts out (preventPodSchedulingIfMissing: false), opt-in only if the"
        " driver opts in (true), as Kubernetes 1.36 does."
    ),
]


def profile_from(
    gates: str, missing_driver: str, environment: Mapping[str, str] = os.environ
) -> Profile:
    """Return the rules of the command line and the environment."""
    return Profile(
        gates=gates_from(gates),
        missing_driver=MissingDriver(missing_driver),
        max_volumes_override=_max_volumes(environment.get(MAX_VOLUMES, "")),
    )


def gates_from(written: str) -> FeatureGates:
    """Return the feature gates of the command line."""
    try:
        return FeatureGates.parse(written)
    except GateError as error:
        raise BadInput(f"--feature-gates: {error}") from None


def judged_as(profile: Profile, judge: str | None) -> Profile:
    """Return the profile to evaluate pods with: ours, kube-scheduler's, or each pod's own."""
    if judge is None:
        return profile.by_scheduler()
    return profile if judge == OUR_SCHEDULER else profile.as_kube_scheduler()


def load_objects(
    sources: Sequence[str],
    command: str,
    *,
    partial: bool = False,
    progress: ProgressBar | None = None,
    events: bool = False,
) -> LoadResult:
    """Return all objects of a dump, with its events if wanted; report invalid ones on stderr.

    BadInput if a part cannot be parsed, unless `partial`.
    """
    if not sources or not all(sources):
        raise BadInput(NEEDS_A_DUMP.format(command=printable(command[:200])))
    loaded = LoadResult()
    try:
        with progress or ProgressBar() as bar:
            for number, source in enumerate(sources):
                loaded.join(load(source, progress=bar.loading(number, len(sources)), events=events))
    except LoadError as error:
        raise BadInput(printable(str(error))) from None
    if loaded.unreadable and not partial:
        raise BadInput(_cut(loaded.unreadable))
    report_problems(loaded.problems)
    report_misspelt(loaded.skipped)
    _report_repeated(loaded.drop_repeated())
    return loaded


def _cut(unreadable: Sequence[ObjectError]) -> str:
    shown = [printable(str(one)) for one in unreadable[:MOST_PROBLEMS_SHOWN]]
    more = len(unreadable) - len(shown)
    lines = [*shown, f"and {more} more"] if more else shown
    message = "the dump is truncated or malformed; --partial uses the part that can be read"
    return "\n  ".join([f"{message}:", *lines])


def _report_repeated(repeated: Mapping[str, int]) -> None:
    """Report duplicate objects."""
    console = notices()
    for name, count in list(repeated.items())[:MOST_PROBLEMS_SHOWN]:
        notice = f"duplicate object, {count} times, the last one counts: {printable(name)}"
        console.print(notice, style="yellow")
    more = len(repeated) - MOST_PROBLEMS_SHOWN
    if more > 0:
        console.print(f"duplicate objects: {more} more", style="yellow")


def report_problems(problems: Sequence[ObjectError]) -> None:
    """Report invalid objects, which are ignored."""
    console = notices()
    for problem in problems[:MOST_PROBLEMS_SHOWN]:
        console.print(f"ignored: {printable(str(problem))}", style="yellow")
    more = len(problems) - MOST_PROBLEMS_SHOWN
    if more > 0:
        console.print(f"ignored: {more} more", style="yellow")


def misses_pods(loaded: LoadResult) -> bool:
    """Return whether pods may be among the ignored objects, or in unreadable text."""
    pods = (one for one in loaded.problems if one.identity.startswith("Pod "))
    return bool(loaded.unreadable) or any(pods)


def those_left_out(count: int, where: str = "dump") -> str:
    """Return a note about the number of ignored objects."""
    were = "1 invalid object of the" if count == 1 else f"{count} invalid objects of the"
    return f"note: {were} {where} {'was' if count == 1 else 'were'} ignored"


def report_misspelt(skipped: Mapping[str, int]) -> None:
    """Report unknown kinds that look like a misspelling of a known one."""
    for name in skipped:
        kind = name.partition(" ")[0]
        meant = get_close_matches(kind, codec.KINDS, n=1, cutoff=MISSPELT)
        if meant and kind not in codec.KINDS:
            notice = f"unknown kind ignored: {printable(name)}; did you mean {meant[0]}?"
            notices().print(notice, style="yellow")


def _max_volumes(written: str) -> int | None:
    if not written:
        return None
    if not (written.isascii() and written.isdecimal()) or len(written) > 9 or int(written) == 0:
        raise BadInput(f"{MAX_VOLUMES}={printable(written[:40])}: must be a positive integer")
    return int(written)
